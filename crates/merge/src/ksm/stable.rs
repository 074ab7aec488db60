//! The stable tree: merged frames under write protection, by content. A frame has at most
//! `max_page_sharing` mappings; then frames of equal content form a chain, which hangs in the tree in their
//! place. A frame that nobody maps any more is *stale* and is found and removed by the next walk past it.

use super::search::{Visit, Walkable};
use crate::PageFrame;
use crate::rb::{Links, NIL, Node, RedBlackTree, Side};

/// The `chain` of a node that is a chain itself.
const IS_CHAIN: u32 = NIL - 1;
/// The `chain` of a node that has left the tree while items still point to it.
const DEAD: u32 = NIL - 2;

/// A merged frame or a chain of them.
#[derive(Clone, Copy, Debug)]
pub struct StableNode {
    links: Links,
    /// The number of a frame's content; for a chain, its first frame.
    frozen: u32,
    /// The number of items that hang on a frame; for a chain, the frame that the last walk chose.
    len: u32,
    /// The number of pages that map a frame; for a chain, the time of its last pruning in milliseconds.
    mapped: u32,
    /// The chain that a frame is in; `NIL` for none.
    chain: u32,
    next: u32,
    prev: u32,
    /// The way in which a chain was last walked; `Not` if it has changed since.
    walked: Walked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Walked {
    Not,
    Whole,
    ToFirst,
}

impl Node for StableNode {
    fn links(&self) -> &Links {
        &self.links
    }
    fn links_mut(&mut self) -> &mut Links {
        &mut self.links
    }
}

#[derive(Debug, Default)]
pub struct Stable {
    nodes: Vec<StableNode>,
    free: Vec<u32>,
    tree: RedBlackTree,
    max_sharing: u32,
    prune_ms: u32,
    pub shared: u64,
    /// Pages that share them, without the first of each.
    pub sharing: u64,
    pub chains: u64,
    pub dups: u64,
}

impl Stable {
    pub fn new(max_sharing: u32, prune_ms: u32) -> Stable {
        Stable {
            max_sharing,
            prune_ms,
            ..Stable::default()
        }
    }

    fn at(&self, node: u32) -> &StableNode {
        &self.nodes[node as usize]
    }

    fn at_mut(&mut self, node: u32) -> &mut StableNode {
        &mut self.nodes[node as usize]
    }

    fn is_chain(&self, node: u32) -> bool {
        self.at(node).chain == IS_CHAIN
    }

    pub fn frozen(&self, node: u32) -> u32 {
        self.at(node).frozen
    }

    pub fn takes_more(&self, node: u32) -> bool {
        self.takes(node, 0)
    }

    pub fn mapped(&self, node: u32) -> u32 {
        self.at(node).mapped
    }

    pub fn is_mapped(&self, node: u32) -> bool {
        self.at(node).mapped > 0
    }

    fn takes(&self, node: u32, offset: u32) -> bool {
        let len = self.at(node).len;
        len > 0 && len + offset < self.max_sharing
    }

    /// Frames that some page maps, each with the number of its mappings.
    pub fn live(&self) -> impl Iterator<Item = (u32, u32)> {
        let frames = self.nodes.iter().filter(|node| node.chain != IS_CHAIN);
        let live = frames.filter(|node| node.chain != DEAD && node.mapped > 0);
        live.map(|node| (node.frozen, node.mapped))
    }

    fn new_node(&mut self) -> u32 {
        let node = StableNode {
            links: Links::default(),
            frozen: 0,
            len: 0,
            mapped: 0,
            chain: NIL,
            next: NIL,
            prev: NIL,
            walked: Walked::Not,
        };
        if let Some(at) = self.free.pop() {
            self.nodes[at as usize] = node;
            return at;
        }
        self.nodes.push(node);
        (self.nodes.len() - 1) as u32
    }

    fn free_node(&mut self, node: u32) {
        self.at_mut(node).len = 0;
        self.at_mut(node).mapped = 0;
        self.at_mut(node).chain = DEAD;
        self.free.push(node);
    }

    fn chain_changed(&mut self, node: u32) {
        let chain = self.at(node).chain;
        if chain < DEAD {
            self.at_mut(chain).walked = Walked::Not;
        }
    }

    pub fn mapped_too(&mut self, node: u32) {
        self.at_mut(node).mapped += 1;
    }

    /// Hangs the item of a page that maps the frame on it.
    pub fn append(&mut self, node: u32) {
        let at = self.at_mut(node);
        at.len += 1;
        if at.len > 1 {
            self.sharing += 1;
        } else {
            self.shared += 1;
        }
        self.chain_changed(node);
    }

    /// Notes that a page no longer maps the frame, while its item still hangs there. Returns the frame's number if it
    /// is free now.
    pub fn unmapped(&mut self, node: u32) -> Option<u32> {
        let at = self.at_mut(node);
        at.mapped -= 1;
        let freed = (at.mapped == 0).then_some(at.frozen);
        if freed.is_some() {
            self.chain_changed(node);
        }
        freed
    }

    /// Takes an item that no longer maps the frame off the frame.
    pub fn detach(&mut self, node: u32) {
        if self.at(node).chain != DEAD && self.at(node).mapped == 0 {
            self.remove_stale(node);
        }
        let at = self.at_mut(node);
        at.len -= 1;
        // A stale frame is out of the tree, but its memory stays until the last item has left it.
        if at.chain == DEAD {
            if at.len == 0 {
                self.free_node(node);
            }
            return;
        }
        if at.len > 0 {
            self.sharing -= 1;
        } else {
            self.shared -= 1;
        }
        self.chain_changed(node);
    }

    /// Removes a frame that nobody maps; the items that hang on it hang nowhere from now on.
    fn remove_stale(&mut self, node: u32) {
        let StableNode { len, chain, .. } = *self.at(node);
        self.shared -= u64::from(len > 0);
        self.sharing -= u64::from(len.saturating_sub(1));
        if chain == NIL {
            self.tree.erase(&mut self.nodes, node);
        } else {
            self.unlink(node);
        }
        self.at_mut(node).chain = DEAD;
        if len == 0 {
            self.free_node(node);
        }
    }

    fn unlink(&mut self, node: u32) {
        let StableNode {
            chain, next, prev, ..
        } = *self.at(node);
        if prev == NIL {
            self.at_mut(chain).frozen = next;
        } else {
            self.at_mut(prev).next = next;
        }
        if next != NIL {
            self.at_mut(next).prev = prev;
        }
        self.at_mut(chain).walked = Walked::Not;
        self.dups -= 1;
    }

    fn link(&mut self, node: u32, chain: u32) {
        let first = self.at(chain).frozen;
        let at = self.at_mut(node);
        (at.chain, at.next, at.prev) = (chain, first, NIL);
        if first != NIL {
            self.at_mut(first).prev = node;
        }
        let at = self.at_mut(chain);
        (at.frozen, at.walked) = (node, Walked::Not);
        self.dups += 1;
    }

    /// Puts a chain in the tree where `node` hangs, and `node` into it.
    fn chain_for(&mut self, node: u32, now_ms: u32) -> u32 {
        let chain = self.new_node();
        let at = self.at_mut(chain);
        (at.chain, at.frozen, at.mapped) = (IS_CHAIN, NIL, now_ms);
        self.chains += 1;
        self.tree.replace(&mut self.nodes, node, chain);
        self.link(node, chain);
        chain
    }

    /// Hangs a new frame into the tree, at `place` or into a chain with the equal node `beside`.
    pub fn insert(
        &mut self,
        frozen: u32,
        place: Option<(u32, Side)>,
        beside: Option<u32>,
        now_ms: u32,
    ) -> u32 {
        let node = self.new_node();
        self.at_mut(node).frozen = frozen;
        match beside {
            None => self.tree.insert(&mut self.nodes, place, node),
            Some(equal) => {
                let chain = if self.is_chain(equal) {
                    equal
                } else {
                    self.chain_for(equal, now_ms)
                };
                self.link(node, chain);
            }
        }
        node
    }

    /// Walks a chain as the kernel does: drops stale frames and chooses one. Returns the node in the tree and the
    /// frame; `None` if no frame is left, and then the chain is gone.
    fn walk_chain(&mut self, chain: u32, prune: bool, now_ms: u32) -> Option<(u32, u32)> {
        let StableNode {
            mapped: pruned_at,
            walked,
            len: chosen,
            ..
        } = *self.at(chain);
        let whole = prune && now_ms.wrapping_sub(pruned_at) >= self.prune_ms;
        if whole {
            self.at_mut(chain).mapped = now_ms;
        }
        let way = if whole {
            Walked::Whole
        } else {
            Walked::ToFirst
        };
        // Nothing in the chain has changed since such a walk, so another would choose the same frame.
        if walked == way {
            return Some((chain, chosen));
        }
        let mut found = None;
        let mut next = self.at(chain).frozen;
        while next != NIL {
            let node = next;
            next = self.at(node).next;
            if self.at(node).mapped == 0 {
                self.remove_stale(node);
                continue;
            }
            // As stable_node_dup() of mm/ksm.c: the fullest frame that still takes a page, so that few frames are
            // shared by few; a walk that does not prune stops at the first that takes one.
            let better = found.is_none_or(|found| {
                self.takes_more(node)
                    && (!self.takes_more(found) || self.at(node).len > self.at(found).len)
            });
            if better {
                found = Some(node);
                if !whole && self.takes_more(node) {
                    break;
                }
            }
        }
        let Some(found) = found else {
            self.tree.erase(&mut self.nodes, chain);
            self.free_node(chain);
            self.chains -= 1;
            return None;
        };
        // A chain of one frame is dissolved: the frame hangs in the tree itself again.
        if self.at(found).next == NIL && self.at(found).prev == NIL {
            self.tree.replace(&mut self.nodes, chain, found);
            self.at_mut(found).chain = NIL;
            self.free_node(chain);
            self.chains -= 1;
            self.dups -= 1;
            return Some((found, found));
        }
        // A frame that takes one more page after this one goes first in the chain, so the next walk finds it at once.
        if self.at(chain).frozen != found && self.takes(found, 1) {
            self.unlink(found);
            self.link(found, chain);
        }
        let at = self.at_mut(chain);
        (at.walked, at.len) = (way, found);
        Some((chain, found))
    }

    /// The tree for a walk. With `prune`, chains whose time has come are walked completely.
    pub fn walk(&mut self, prune: bool, now_ms: u32) -> StableWalk<'_> {
        StableWalk {
            stable: self,
            prune,
            now_ms,
        }
    }
}

#[derive(Debug)]
pub struct StableWalk<'s> {
    stable: &'s mut Stable,
    prune: bool,
    now_ms: u32,
}

impl Walkable for StableWalk<'_> {
    fn root(&self) -> u32 {
        self.stable.tree.root
    }

    fn child(&self, at: u32, side: Side) -> u32 {
        self.stable.at(at).links.child(side)
    }

    fn visit(&mut self, at: u32) -> Visit {
        let visited = if self.stable.is_chain(at) {
            self.stable.walk_chain(at, self.prune, self.now_ms)
        } else if self.stable.at(at).mapped == 0 {
            self.stable.remove_stale(at);
            None
        } else {
            Some((at, at))
        };
        match visited {
            None => Visit::Again,
            Some((node, holder)) => Visit::Here {
                node,
                holder,
                frame: PageFrame::Merged(self.stable.frozen(holder)),
            },
        }
    }
}
