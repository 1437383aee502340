//! Who is woken when something becomes true: the loop, a long poll, a live page. On this instance directly; on the
//! others by NOTIFY, sent after the commit and coalesced. A wake-up is a hint: whoever is woken looks in the database,
//! and everybody also looks now and then without being woken.

use std::{
    collections::HashMap,
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

#[derive(Default)]
struct Waiting {
    by_topic: HashMap<Topic, Vec<(u64, Arc<Notify>)>>,
}

#[derive(Clone, Default)]
pub struct Wakes {
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

impl Wakes {
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
        let waiting = self.waiting();
        for topic in topics {
            for (_, woken) in waiting.by_topic.get(topic).into_iter().flatten() {
                woken.notify_one();
            }
        }
    }

    fn wake_everybody(&self) {
        for (_, woken) in self.waiting().by_topic.values().flatten() {
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
        let me = Uuid::from_bytes({
            let mut bytes = [0; 16];
            crate::clock::random_bytes(&mut bytes);
            bytes
        });
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
                while let Some(notification) = listener.try_recv().await? {
                    match serde_json::from_str::<(Uuid, Vec<Topic>)>(notification.payload()) {
                        Ok((from, topics)) if from != me => self.wake_here(&topics),
                        Ok(_) => {}
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
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        while let Ok(more) = receive.try_recv() {
            topics.extend(more);
        }
        for payload in payloads(me, topics) {
            let sent = sqlx::query("select pg_notify($1, $2)").bind(CHANNEL).bind(payload).execute(&pool).await;
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
