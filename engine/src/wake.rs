//! Who is woken when something becomes true: the loop, a long poll, a live page. On this instance directly; on the
//! others by NOTIFY, sent after the commit and coalesced. A wake-up is a hint: whoever is woken looks in the database,
//! and everybody also looks now and then without being woken.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    str::FromStr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use serde::{Deserialize, Serialize};
use sqlx::{PgPool, postgres::PgListener};
use tokio::sync::{Notify, mpsc};
use uuid::Uuid;

use crate::ids::{ClaimId, SlotId, TaskId};

/// What something can wait for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Topic {
    /// A task became ready for Layby's own loop.
    Work,
    /// A slot got a time at which it expires.
    Clock,
    /// A slot changed.
    Slot(SlotId),
    /// A task's receipt or record changed.
    Task(TaskId),
    /// A claim or the work on it changed.
    Claim(ClaimId),
    /// A question arrived for, or left, whoever was asked under this key.
    Inbox(String),
    /// Any task changed.
    AnyTask,
}

const CHANNEL: &str = "layby";
/// NOTIFY carries at most 8,000 bytes; what does not fit goes in the next one.
const PAYLOAD: usize = 7_500;

/// How many wake-ups an instance remembers, for whoever connects a moment after it looked.
const REMEMBERED: usize = 4_096;

#[derive(Default)]
struct Waiting {
    by_topic: HashMap<Topic, Vec<(u64, Arc<Notify>)>>,
    /// The last wake-ups, numbered by `count`.
    recent: VecDeque<Topic>,
    count: u64,
}

/// A moment of one instance: taken before looking, it tells later whether anything has changed since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    instance: Uuid,
    count: u64,
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.instance, self.count)
    }
}

impl FromStr for Mark {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let (instance, count) = text.split_once('.').ok_or(())?;
        Ok(Self { instance: instance.parse().map_err(drop)?, count: count.parse().map_err(drop)? })
    }
}

#[derive(Clone)]
pub struct Wakes {
    /// Which instance this is, for the others and for marks.
    me: Uuid,
    waiting: Arc<Mutex<Waiting>>,
    next: Arc<AtomicU64>,
    others: Arc<std::sync::OnceLock<mpsc::UnboundedSender<Vec<Topic>>>>,
}

/// Interest in some topics, until it is dropped.
pub struct Subscription {
    wakes: Wakes,
    topics: Vec<Topic>,
    id: u64,
    woken: Arc<Notify>,
}

impl Subscription {
    /// Returns at the next wake-up, or at once when there was one since the last call.
    pub async fn woken(&self) {
        self.woken.notified().await;
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut waiting = self.wakes.waiting();
        for topic in &self.topics {
            if let Some(list) = waiting.by_topic.get_mut(topic) {
                list.retain(|(id, _)| *id != self.id);
                if list.is_empty() {
                    waiting.by_topic.remove(topic);
                }
            }
        }
    }
}

impl Default for Wakes {
    fn default() -> Self {
        let mut bytes = [0; 16];
        crate::clock::random_bytes(&mut bytes);
        Self { me: Uuid::from_bytes(bytes), waiting: Arc::default(), next: Arc::default(), others: Arc::default() }
    }
}

impl Wakes {
    /// This moment.
    pub fn mark(&self) -> Mark {
        Mark { instance: self.me, count: self.waiting().count }
    }

    /// Whether one of `topics` may have changed since `mark`: also yes when that can no longer be told.
    pub fn changed_since(&self, mark: &Mark, topics: &[Topic]) -> bool {
        let waiting = self.waiting();
        let missed = waiting.count.saturating_sub(mark.count);
        mark.instance != self.me
            || missed > waiting.recent.len() as u64
            || waiting.recent.iter().rev().take(missed as usize).any(|topic| topics.contains(topic))
    }

    /// Subscribe before looking in the database, so that nothing falls between the two.
    pub fn subscribe(&self, topics: impl IntoIterator<Item = Topic>) -> Subscription {
        let topics: Vec<_> = topics.into_iter().collect();
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let woken = Arc::new(Notify::new());
        let mut waiting = self.waiting();
        for topic in &topics {
            waiting.by_topic.entry(topic.clone()).or_default().push((id, woken.clone()));
        }
        drop(waiting);
        Subscription { wakes: self.clone(), topics, id, woken }
    }

    /// Wakes this instance's waiters now and the other instances' soon.
    pub(crate) fn announce(&self, topics: Vec<Topic>) {
        if topics.is_empty() {
            return;
        }
        self.wake_here(&topics);
        if let Some(others) = self.others.get() {
            // Fails only when the program is shutting down; the others' polls will find it.
            let _ = others.send(topics);
        }
    }

    fn wake_here(&self, topics: &[Topic]) {
        let mut waiting = self.waiting();
        for topic in topics {
            waiting.count += 1;
            if waiting.recent.len() == REMEMBERED {
                waiting.recent.pop_front();
            }
            waiting.recent.push_back(topic.clone());
            for (_, woken) in waiting.by_topic.get(topic).into_iter().flatten() {
                woken.notify_one();
            }
        }
    }

    fn wake_everybody(&self) {
        let mut waiting = self.waiting();
        // Nobody can tell any more what has changed since an earlier mark.
        waiting.count += REMEMBERED as u64;
        waiting.recent.clear();
        for (_, woken) in waiting.by_topic.values().flatten() {
            woken.notify_one();
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The slots that somebody on this instance waits for, for the poll that catches lost notifications.
    pub fn awaited_slots(&self) -> Vec<SlotId> {
        let slot = |topic: &Topic| if let Topic::Slot(id) = topic { Some(*id) } else { None };
        self.waiting().by_topic.keys().filter_map(slot).collect()
    }

    pub fn wake_slots(&self, slots: Vec<SlotId>) {
        self.wake_here(&slots.into_iter().map(Topic::Slot).collect::<Vec<_>>());
    }

    /// Exchanges wake-ups with the other instances. Runs until `pool` is closed; reconnects by itself, and wakes
    /// everybody when it has, because what came in between was missed.
    pub async fn exchange(self, pool: PgPool) {
        let me = self.me;
        let (send, receive) = mpsc::unbounded_channel();
        if self.others.set(send).is_err() {
            return;
        }
        tokio::join!(notify_others(pool.clone(), me, receive), self.hear_others(pool, me));
    }

    async fn hear_others(&self, pool: PgPool, me: Uuid) {
        while !pool.is_closed() {
            let heard = async {
                let mut listener = PgListener::connect_with(&pool).await?;
                listener.listen(CHANNEL).await?;
                self.wake_everybody();
                let own = format!("[\"{me}\"");
                while let Some(notification) = listener.try_recv().await? {
                    if notification.payload().starts_with(&own) {
                        continue;
                    }
                    match serde_json::from_str::<(Uuid, Vec<Topic>)>(notification.payload()) {
                        Ok((_, topics)) => self.wake_here(&topics),
                        // A newer version may say what this one does not know.
                        Err(_) => self.wake_everybody(),
                    }
                }
                Ok::<_, sqlx::Error>(())
            };
            if let Err(error) = heard.await
                && !pool.is_closed()
            {
                tracing::warn!(%error, "the notification channel was lost and is being reopened");
                tokio::time::sleep(std::time::Duration::from_millis(500)).await;
            }
        }
    }
}

async fn notify_others(pool: PgPool, me: Uuid, mut receive: mpsc::UnboundedReceiver<Vec<Topic>>) {
    while let Some(mut topics) = receive.recv().await {
        // Under load many commits share one NOTIFY.
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        while let Ok(more) = receive.try_recv() {
            topics.extend(more);
        }
        for payload in payloads(me, topics) {
            // A NOTIFY is a commit with a flush of its own, for something that is only a hint: this one need not wait.
            let sent = sqlx::query("select set_config('synchronous_commit', 'off', true), pg_notify($1, $2)")
                .bind(CHANNEL)
                .bind(payload)
                .execute(&pool)
                .await;
            if let Err(error) = sent {
                tracing::warn!(%error, "other instances were not notified; they will find the work when they poll");
            }
        }
        if pool.is_closed() {
            return;
        }
    }
}

fn payloads(me: Uuid, topics: Vec<Topic>) -> Vec<String> {
    let mut payloads = Vec::new();
    let mut batch: Vec<Topic> = Vec::new();
    let mut size = 0;
    let mut seen = std::collections::HashSet::new();
    for topic in topics {
        if !seen.insert(topic.clone()) {
            continue;
        }
        size += serde_json::to_string(&topic).map_or(0, |text| text.len() + 1);
        if size > PAYLOAD && !batch.is_empty() {
            payloads.push(std::mem::take(&mut batch));
            size = 0;
        }
        batch.push(topic);
    }
    payloads.push(batch);
    payloads.into_iter().filter_map(|batch| serde_json::to_string(&(me, batch)).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_after_the_mark_is_told_and_one_before_is_not() {
        let wakes = Wakes::default();
        wakes.announce(vec![Topic::Work]);
        let mark: Mark = wakes.mark().to_string().parse().unwrap();
        assert_eq!(mark, wakes.mark());
        assert!(!wakes.changed_since(&mark, &[Topic::Work]));
        wakes.announce(vec![Topic::Clock]);
        assert!(wakes.changed_since(&mark, &[Topic::Work, Topic::Clock]));
        assert!(!wakes.changed_since(&mark, &[Topic::Work]));
        // What cannot be told any more counts as changed: too long ago, another instance, a lost connection.
        wakes.announce(vec![Topic::AnyTask; REMEMBERED + 1]);
        assert!(wakes.changed_since(&mark, &[Topic::Work]));
        assert!(Wakes::default().changed_since(&mark, &[Topic::Work]));
        let mark = wakes.mark();
        wakes.wake_everybody();
        assert!(wakes.changed_since(&mark, &[Topic::Work]));
        assert!("nonsense".parse::<Mark>().is_err());
    }
}
