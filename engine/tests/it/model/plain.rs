//! The plain model: what must come of everything that can be done, said without a database (design section 4).

use std::collections::{BTreeMap, BTreeSet};

use engine::testing::Who;
use serde_json::{Value, json};

use super::ops::{Act, EVERYBODY, Op, Opening, Tag, email};

/// A task, its slots, and who is away.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Model {
    pub slots: BTreeMap<Tag, PlainSlot>,
    pub stopped: bool,
    /// Who covers for whom.
    away: BTreeMap<usize, Who>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct PlainSlot {
    /// None for an ordinary question.
    approvals: Option<i32>,
    pub status: &'static str,
    pub revision: i32,
    amount: i64,
    /// Who voted, and whose seat it took.
    votes: Vec<(Who, Option<Who>)>,
    asked: Vec<&'static str>,
    declined: Vec<Who>,
    rung: i16,
    taken: Option<Who>,
    /// How many lines of each kind record and audit must have.
    pub lines: BTreeMap<&'static str, i64>,
}

fn is_member(who: Who, party: &str) -> bool {
    match party {
        "group:finance" => matches!(who, Who::Sam | Who::Noor),
        "role:manager" => matches!(who, Who::Noor),
        other => other == email(who),
    }
}

fn person(party: &str) -> Option<Who> {
    EVERYBODY.into_iter().find(|who| email(*who) == party)
}

#[derive(PartialEq)]
enum Stands {
    Asked,
    OnBehalf,
    MaySee,
    Hidden,
}

impl Model {
    pub(super) fn new(opening: &Opening) -> Self {
        let slots = BTreeMap::from([(0, PlainSlot::new(opening))]);
        Self { slots, stopped: false, away: BTreeMap::new() }
    }

    /// What must come of `op`, and what it leaves. `seen`: the model when the step began.
    pub(super) fn apply(&self, op: &Op, seen: &Self) -> (Self, &'static str) {
        let mut next = self.clone();
        let code = next.change(op, seen);
        (if code == "ok" { next } else { self.clone() }, code)
    }

    fn change(&mut self, op: &Op, seen: &Self) -> &'static str {
        match op {
            Op::Open(..) if self.stopped => return "task_ended",
            Op::Open(tag, opening) => drop(self.slots.insert(*tag, PlainSlot::new(opening))),
            Op::On(tag, act) => {
                // Nobody can do anything to a slot that they have not seen.
                let Some(seen) = seen.slots.get(tag) else { return "not_found" };
                let away = self.away.clone();
                return self.slots.get_mut(tag).map_or("not_found", |slot| slot.change(&away, act, seen.revision));
            }
            Op::Stop { who: Who::Mia | Who::Sam } => return "not_found",
            Op::Stop { .. } if self.stopped => return "task_ended",
            Op::Stop { .. } => {
                self.stopped = true;
                self.end_all("cancelled");
            }
            Op::Expire => self.end_all("expired"),
            Op::GoAway { who, cover } => drop(self.away.insert(*who as usize, *cover)),
            Op::ComeBack { who } => drop(self.away.remove(&(*who as usize))),
        }
        "ok"
    }

    fn end_all(&mut self, status: &'static str) {
        for slot in self.slots.values_mut() {
            slot.end(status);
        }
    }

    /// Two hours pass: nobody is on anything any more.
    pub(super) fn later(&mut self) {
        self.slots.values_mut().for_each(|slot| slot.taken = None);
    }

    pub(super) fn shown(&self) -> BTreeMap<Tag, Value> {
        self.slots.iter().map(|(tag, slot)| (*tag, slot.shown())).collect()
    }
}

impl PlainSlot {
    fn new(opening: &Opening) -> Self {
        Self {
            approvals: opening.needs,
            status: "waiting",
            revision: 1,
            amount: 40,
            votes: Vec::new(),
            asked: opening.asked.clone(),
            declined: Vec::new(),
            rung: 0,
            taken: None,
            lines: BTreeMap::new(),
        }
    }

    fn line(&mut self, kind: &'static str) {
        *self.lines.entry(kind).or_default() += 1;
    }

    fn still_needs(&self) -> usize {
        self.approvals.unwrap_or(1) as usize - self.votes.len()
    }

    /// Who has had their say, in person or through somebody who covers for them.
    fn spent(&self) -> Vec<Who> {
        let voted = self.votes.iter().flat_map(|(who, covers)| [Some(*who), *covers]).flatten();
        self.declined.iter().copied().chain(voted).collect()
    }

    fn has_key(away: &BTreeMap<usize, Who>, who: Who, party: &str) -> bool {
        is_member(who, party) || person(party).is_some_and(|absent| away.get(&(absent as usize)) == Some(&who))
    }

    /// The parties through which `who` may answer.
    fn seats(&self, away: &BTreeMap<usize, Who>, who: Who) -> Vec<&'static str> {
        let spent = self.spent();
        let free = |party: &str| person(party).is_none_or(|seat| seat == who || !spent.contains(&seat));
        self.asked.iter().copied().filter(|party| Self::has_key(away, who, party) && free(party)).collect()
    }

    /// Whose seat `who` takes, when they answer only for somebody who is away.
    fn covers(&self, away: &BTreeMap<usize, Who>, who: Who) -> Option<Who> {
        let seats = self.seats(away, who);
        match seats.iter().any(|party| is_member(who, party)) {
            true => None,
            false => seats.last().and_then(|party| person(party)),
        }
    }

    fn stands(&self, away: &BTreeMap<usize, Who>, who: Who) -> Stands {
        let sees =
            matches!(who, Who::Noor | Who::Ada) || self.asked.iter().any(|party| Self::has_key(away, who, party));
        let only_sees = if sees { Stands::MaySee } else { Stands::Hidden };
        let voted = self.votes.iter().any(|(by, covers)| *by == who || *covers == Some(who));
        if self.status == "waiting" && voted {
            return only_sees;
        }
        if !self.seats(away, who).is_empty() && !self.declined.contains(&who) {
            return Stands::Asked;
        }
        if who == Who::Noor { Stands::OnBehalf } else { only_sees }
    }

    fn ended(&self) -> Option<&'static str> {
        match self.status {
            "waiting" => None,
            "answered" => Some("already_answered"),
            other => Some(other),
        }
    }

    fn end(&mut self, status: &'static str) -> &'static str {
        if let Some(ended) = self.ended() {
            return ended;
        }
        self.status = status;
        self.taken = None;
        self.line(status);
        "ok"
    }

    fn change(&mut self, away: &BTreeMap<usize, Who>, act: &Act, seen: i32) -> &'static str {
        let by = match *act {
            Act::CancelByAgent => return self.end("cancelled"),
            Act::Answer { who } => return self.answer(away, who, seen),
            Act::Approve { who, fresh } => return self.decide(away, who, fresh, seen, Some(self.amount)),
            Act::Edit { who, fresh, amount } => return self.decide(away, who, fresh, seen, Some(amount)),
            Act::Reject { who, fresh } => return self.decide(away, who, fresh, seen, None),
            Act::Reassign { who, .. }
            | Act::Decline { who }
            | Act::Take { who }
            | Act::LetGo { who }
            | Act::CancelBy { who } => who,
        };
        let stands = self.stands(away, by);
        if stands == Stands::Hidden {
            return "not_found";
        }
        let supervises = matches!(by, Who::Noor | Who::Ada);
        match (act, self.ended()) {
            (Act::CancelBy { .. }, _) if !supervises => return "not_yours",
            (_, Some(ended)) => return ended,
            _ => {}
        }
        match *act {
            Act::CancelBy { .. } => self.end("cancelled"),
            Act::Reassign { who, to } => self.reassign(away, who, to),
            Act::Decline { .. } if stands != Stands::Asked => "not_yours",
            Act::Decline { who } => self.decline(who),
            _ if stands == Stands::MaySee => "not_yours",
            _ if self.taken.is_some_and(|taken| taken != by) => "taken",
            Act::Take { .. } => {
                self.taken = Some(by);
                self.line("taken");
                "ok"
            }
            _ => {
                if self.taken.take().is_some() {
                    self.line("let_go");
                }
                "ok"
            }
        }
    }

    /// How many of those parties could answer, without these.
    fn reach(asked: &[&str], without: &[Who]) -> usize {
        let there = |who: &Who| asked.iter().any(|party| is_member(*who, party)) && !without.contains(who);
        EVERYBODY.iter().filter(|who| there(who)).count()
    }

    fn reassign(&mut self, away: &BTreeMap<usize, Who>, who: Who, to: &'static str) -> &'static str {
        let asked = !self.seats(away, who).is_empty() && !self.declined.contains(&who);
        if who != Who::Noor && !asked {
            return "not_yours";
        }
        // Asked by name, somebody who declined is asked anew.
        let mut next = self.clone();
        next.declined.retain(|declined| Some(*declined) != person(to));
        if self.asked == [to] || Self::reach(&[to], &next.spent()) < self.still_needs() {
            return "invalid";
        }
        next.hand_to(vec![to], "reassigned");
        *self = next;
        "ok"
    }

    fn decline(&mut self, who: Who) -> &'static str {
        let mut next = self.clone();
        next.declined.push(who);
        let enough = |asked: &[&str]| Self::reach(asked, &next.spent()) >= next.still_needs();
        let others: Vec<_> = self.asked.iter().copied().filter(|party| *party != email(who)).collect();
        let first = self.asked.iter().find_map(|party| person(party));
        let (asked, rung) = if enough(&others) {
            (others, self.rung)
        } else if self.rung < 1 && first != Some(Who::Noor) && enough(&["noor@layby.example"]) {
            (vec!["noor@layby.example"], 1)
        } else if self.rung < 2 && enough(&["role:manager"]) {
            (vec!["role:manager"], 2)
        } else {
            return "forbidden";
        };
        next.rung = rung;
        next.hand_to(asked, "declined");
        *self = next;
        "ok"
    }

    fn hand_to(&mut self, asked: Vec<&'static str>, line: &'static str) {
        self.asked = asked;
        self.taken = None;
        self.line(line);
    }

    fn answer(&mut self, away: &BTreeMap<usize, Who>, who: Who, seen: i32) -> &'static str {
        match self.may_deposit(away, who, seen) {
            Some(refusal) => refusal,
            None if self.approvals.is_some() => "invalid_answer",
            None => self.end("answered"),
        }
    }

    fn may_deposit(&self, away: &BTreeMap<usize, Who>, who: Who, seen: i32) -> Option<&'static str> {
        match self.stands(away, who) {
            Stands::Hidden => return Some("not_found"),
            Stands::MaySee => return Some("not_yours"),
            Stands::Asked | Stands::OnBehalf => {}
        }
        self.ended().or((seen != self.revision).then_some("stale"))
    }

    /// Yes to this amount, or no.
    fn decide(
        &mut self,
        away: &BTreeMap<usize, Who>,
        who: Who,
        fresh: bool,
        seen: i32,
        amount: Option<i64>,
    ) -> &'static str {
        if let Some(refusal) = self.may_deposit(away, who, if fresh { seen } else { seen - 1 }) {
            return refusal;
        }
        let Some(needs) = self.approvals else { return "invalid_answer" };
        let Some(amount) = amount else { return self.end("answered") };
        // A manager's say on behalf of whoever was asked takes nobody's seat.
        let covers = self.covers(away, who).filter(|_| self.stands(away, who) == Stands::Asked);
        let edited = amount != self.amount;
        if edited {
            self.votes.clear();
            self.amount = amount;
        }
        self.votes.push((who, covers));
        if self.votes.len() as i32 == needs {
            return self.end("answered");
        }
        self.revision += i32::from(edited);
        self.line("voted");
        "ok"
    }

    /// What a reader sees of it; as [`super::shown`] tells it of the database.
    fn shown(&self) -> Value {
        let votes: BTreeSet<_> = self.votes.iter().map(|(who, covers)| (email(*who), covers.map(email))).collect();
        let declined: BTreeSet<_> = self.declined.iter().map(|who| email(*who)).collect();
        let amount = self.approvals.map(|_| self.amount);
        json!([self.status, self.revision, amount, votes, self.asked, declined, self.rung, self.taken.map(email)])
    }
}
