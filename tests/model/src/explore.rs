//! Visits every state that can be reached, the nearest first, so that a counterexample is as short as any.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use crate::{Action, Model, World};

/// All states that were visited.
#[derive(Debug)]
pub struct Explored {
    /// How many.
    pub states: usize,
    /// Steps to the farthest.
    pub depth: u32,
    /// The way to the first state that is wrong. Nothing behind it was visited.
    pub counterexample: Option<Counterexample>,
}

/// A way that ends where it must not.
#[derive(Debug)]
pub struct Counterexample {
    /// The rule that is broken.
    pub rule: &'static str,
    /// From the start.
    pub steps: Vec<Action>,
}

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}, after {} steps:", self.rule, self.steps.len())?;
        self.steps.iter().enumerate().try_for_each(|(n, step)| writeln!(f, "{:4} {step:?}", n + 1))
    }
}

/// How a state was reached first.
#[derive(Clone, Copy)]
struct Origin {
    from: u32,
    by: Action,
    depth: u32,
}

/// States are told apart by 64 bits: of a million, two are mixed up once in 37 million explorations.
#[derive(Default)]
struct Visited {
    numbers: HashMap<u64, u32>,
    origins: Vec<Option<Origin>>,
    hashing: BuildHasherDefault<DefaultHasher>,
}

impl Visited {
    /// Its number, and whether it is new.
    fn visit(&mut self, world: &World, origin: Option<Origin>) -> (u32, bool) {
        let fresh = self.origins.len() as u32;
        let number = *self.numbers.entry(self.hashing.hash_one(world)).or_insert(fresh);
        if number == fresh {
            self.origins.push(origin);
        }
        (number, number == fresh)
    }

    fn depth(&self, number: u32) -> u32 {
        self.origins[number as usize].map_or(0, |origin| origin.depth)
    }

    fn way_to(&self, number: u32) -> Vec<Action> {
        let origin = |at: u32| self.origins[at as usize];
        let back = std::iter::successors(origin(number), |last| origin(last.from));
        let mut steps: Vec<Action> = back.map(|origin| origin.by).collect();
        steps.reverse();
        steps
    }
}

/// Visits all states until one is wrong, and then asks of each whether the end is within reach.
#[must_use]
pub fn explore(model: &Model) -> Explored {
    let mut visited = Visited::default();
    let mut queue = VecDeque::new();
    let mut ends = Vec::new();
    let mut edges: Vec<(u32, u32)> = Vec::new();

    let start = model.start();
    let (number, _) = visited.visit(&start, None);
    queue.push_back((number, start));
    let mut depth = 0;
    while let Some((number, world)) = queue.pop_front() {
        depth = visited.depth(number);
        if let Some(rule) = model.wrong(&world) {
            let counterexample = Some(Counterexample { rule, steps: visited.way_to(number) });
            return Explored { states: visited.origins.len(), depth, counterexample };
        }
        if model.is_done(&world) {
            ends.push(number);
        }
        for action in model.actions(&world) {
            let next = model.next(&world, action);
            let (to, is_new) = visited.visit(&next, Some(Origin { from: number, by: action, depth: depth + 1 }));
            edges.push((to, number));
            if is_new {
                queue.push_back((to, next));
            }
        }
    }
    let states = visited.origins.len();
    let counterexample = out_of_reach(states, &ends, edges)
        .map(|number| Counterexample { rule: "the end is out of reach", steps: visited.way_to(number) });
    Explored { states, depth, counterexample }
}

/// The first state from which no end can be reached, by going backwards from all ends.
fn out_of_reach(states: usize, ends: &[u32], mut edges: Vec<(u32, u32)>) -> Option<u32> {
    edges.sort_unstable();
    let mut reaches = vec![false; states];
    let mut queue = Vec::from(ends);
    while let Some(number) = queue.pop() {
        if std::mem::replace(&mut reaches[number as usize], true) {
            continue;
        }
        let first = edges.partition_point(|(to, _)| *to < number);
        queue.extend(edges[first..].iter().take_while(|(to, _)| *to == number).map(|(_, from)| *from));
    }
    reaches.iter().position(|reaches| !reaches).map(|number| number as u32)
}
