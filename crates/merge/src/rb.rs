//! Red-black trees as the kernel has them: the nodes carry the links, the caller walks and compares.
//! KSM prunes what a walk passes, so its counters depend on the shape of the tree; insertion and
//! erasure here are those of Cormen et al., chapter 13, which the kernel's follow step by step.

pub const NIL: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Left = 0,
    Right = 1,
}

impl Side {
    fn other(self) -> Side {
        match self {
            Side::Left => Side::Right,
            Side::Right => Side::Left,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Links {
    children: [u32; 2],
    /// The parent's number; the top bit is set if this node is red.
    parent: u32,
}

const RED: u32 = 1 << 31;
const NO_PARENT: u32 = NIL & !RED;

impl Default for Links {
    fn default() -> Links {
        Links {
            children: [NIL; 2],
            parent: NO_PARENT,
        }
    }
}

impl Links {
    pub fn child(&self, side: Side) -> u32 {
        self.children[side as usize]
    }

    fn parent(&self) -> u32 {
        match self.parent & !RED {
            NO_PARENT => NIL,
            parent => parent,
        }
    }

    fn red(&self) -> bool {
        self.parent & RED != 0
    }

    fn set_parent(&mut self, parent: u32) {
        self.parent = self.parent & RED | parent & !RED;
    }

    fn set_red(&mut self, red: bool) {
        self.parent = self.parent & !RED | if red { RED } else { 0 };
    }
}

/// A node of a tree, which has at most 2^31 - 1 of them.
pub trait Node {
    fn links(&self) -> &Links;
    fn links_mut(&mut self) -> &mut Links;
}

#[derive(Clone, Copy, Debug)]
pub struct RedBlackTree {
    pub root: u32,
}

impl Default for RedBlackTree {
    fn default() -> RedBlackTree {
        RedBlackTree { root: NIL }
    }
}

fn child<N: Node>(nodes: &[N], at: u32, side: Side) -> u32 {
    nodes[at as usize].links().child(side)
}

fn parent<N: Node>(nodes: &[N], at: u32) -> u32 {
    nodes[at as usize].links().parent()
}

fn red<N: Node>(nodes: &[N], at: u32) -> bool {
    at != NIL && nodes[at as usize].links().red()
}

fn set_red<N: Node>(nodes: &mut [N], at: u32, red: bool) {
    nodes[at as usize].links_mut().set_red(red);
}

fn set_child<N: Node>(nodes: &mut [N], at: u32, side: Side, child: u32) {
    nodes[at as usize].links_mut().children[side as usize] = child;
}

fn set_parent<N: Node>(nodes: &mut [N], at: u32, parent: u32) {
    nodes[at as usize].links_mut().set_parent(parent);
}

fn side_of<N: Node>(nodes: &[N], parent: u32, at: u32) -> Side {
    if child(nodes, parent, Side::Left) == at {
        Side::Left
    } else {
        Side::Right
    }
}

impl RedBlackTree {
    /// Hangs `new` below `place`, or makes it the root.
    pub fn insert<N: Node>(&mut self, nodes: &mut [N], place: Option<(u32, Side)>, new: u32) {
        *nodes[new as usize].links_mut() = Links::default();
        let Some((above, side)) = place else {
            self.root = new;
            return;
        };
        debug_assert_eq!(child(nodes, above, side), NIL);
        set_child(nodes, above, side, new);
        set_parent(nodes, new, above);
        set_red(nodes, new, true);
        self.mend_red(nodes, new);
    }

    fn mend_red<N: Node>(&mut self, nodes: &mut [N], mut at: u32) {
        loop {
            let mut above = parent(nodes, at);
            if above == NIL {
                set_red(nodes, at, false);
                return;
            }
            if !red(nodes, above) {
                return;
            }
            let top = parent(nodes, above); // red, so it is not the root
            let side = side_of(nodes, top, above);
            let uncle = child(nodes, top, side.other());
            if red(nodes, uncle) {
                set_red(nodes, above, false);
                set_red(nodes, uncle, false);
                set_red(nodes, top, true);
                at = top;
                continue;
            }
            if child(nodes, above, side.other()) == at {
                self.rotate(nodes, above, side);
                above = at;
            }
            set_red(nodes, above, false);
            set_red(nodes, top, true);
            self.rotate(nodes, top, side.other());
            return;
        }
    }

    /// Turns the tree at `at` so that it sinks to `side` and its other child rises.
    fn rotate<N: Node>(&mut self, nodes: &mut [N], at: u32, side: Side) {
        let rising = child(nodes, at, side.other());
        let between = child(nodes, rising, side);
        set_child(nodes, at, side.other(), between);
        if between != NIL {
            set_parent(nodes, between, at);
        }
        self.put(nodes, at, rising);
        set_child(nodes, rising, side, at);
        set_parent(nodes, at, rising);
    }

    /// Hangs `new` (or `NIL`) where `old` hangs, without its children and colour.
    fn put<N: Node>(&mut self, nodes: &mut [N], old: u32, new: u32) {
        let above = parent(nodes, old);
        if above == NIL {
            self.root = new;
        } else {
            let side = side_of(nodes, above, old);
            set_child(nodes, above, side, new);
        }
        if new != NIL {
            set_parent(nodes, new, above);
        }
    }

    /// Puts `new` in the place of `old`, with its children and its colour.
    pub fn replace<N: Node>(&mut self, nodes: &mut [N], old: u32, new: u32) {
        let links = *nodes[old as usize].links();
        self.put(nodes, old, new);
        *nodes[new as usize].links_mut() = links;
        for below in links.children {
            if below != NIL {
                set_parent(nodes, below, new);
            }
        }
    }

    /// Erases `at`. If it has two children its successor takes its place.
    pub fn erase<N: Node>(&mut self, nodes: &mut [N], at: u32) {
        let [left, right] = nodes[at as usize].links().children;
        let (hole, above, side, black);
        if left == NIL || right == NIL {
            hole = if left == NIL { right } else { left };
            above = parent(nodes, at);
            side = (above != NIL).then(|| side_of(nodes, above, at));
            black = !red(nodes, at);
            self.put(nodes, at, hole);
        } else {
            let mut next = right;
            while child(nodes, next, Side::Left) != NIL {
                next = child(nodes, next, Side::Left);
            }
            hole = child(nodes, next, Side::Right);
            black = !red(nodes, next);
            let was_red = red(nodes, at);
            if next == right {
                above = next;
                side = Some(Side::Right);
            } else {
                above = parent(nodes, next);
                side = Some(Side::Left);
                self.put(nodes, next, hole);
                set_child(nodes, next, Side::Right, right);
                set_parent(nodes, right, next);
            }
            self.put(nodes, at, next);
            set_child(nodes, next, Side::Left, left);
            set_parent(nodes, left, next);
            set_red(nodes, next, was_red);
        }
        if black {
            self.mend_black(nodes, hole, above, side);
        }
    }

    /// Mends the tree where `at` (maybe `NIL`), the child of `above` on `side`, lacks a black node.
    fn mend_black<N: Node>(
        &mut self,
        nodes: &mut [N],
        mut at: u32,
        mut above: u32,
        mut side: Option<Side>,
    ) {
        while above != NIL && !red(nodes, at) {
            let here = side.expect("a node that is not the root is on a side");
            let mut sibling = child(nodes, above, here.other());
            if red(nodes, sibling) {
                set_red(nodes, sibling, false);
                set_red(nodes, above, true);
                self.rotate(nodes, above, here);
                sibling = child(nodes, above, here.other());
            }
            let near = child(nodes, sibling, here);
            let far = child(nodes, sibling, here.other());
            if !red(nodes, near) && !red(nodes, far) {
                set_red(nodes, sibling, true);
                at = above;
                above = parent(nodes, at);
                side = (above != NIL).then(|| side_of(nodes, above, at));
                continue;
            }
            if !red(nodes, far) {
                set_red(nodes, near, false);
                set_red(nodes, sibling, true);
                self.rotate(nodes, sibling, here.other());
                sibling = near;
            }
            let of_above = red(nodes, above);
            set_red(nodes, sibling, of_above);
            set_red(nodes, above, false);
            let far = child(nodes, sibling, here.other());
            set_red(nodes, far, false);
            self.rotate(nodes, above, here);
            return;
        }
        if at != NIL {
            set_red(nodes, at, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Default)]
    struct Plain(Links);

    impl Node for Plain {
        fn links(&self) -> &Links {
            &self.0
        }
        fn links_mut(&mut self) -> &mut Links {
            &mut self.0
        }
    }

    /// Returns the black height of a tree in order and coloured as it must be, or panics.
    fn check(nodes: &[Plain], at: u32, above: u32, seen: &mut Vec<u32>) -> usize {
        if at == NIL {
            return 1;
        }
        assert_eq!(parent(nodes, at), above);
        assert!(!(red(nodes, at) && red(nodes, above)));
        let left = check(nodes, child(nodes, at, Side::Left), at, seen);
        seen.push(at);
        let right = check(nodes, child(nodes, at, Side::Right), at, seen);
        assert_eq!(left, right);
        left + usize::from(!red(nodes, at))
    }

    proptest! {
        #![proptest_config(sardonyx_property::cases(256))]

        #[test]
        fn the_tree_stays_in_order_and_balanced(steps in prop::collection::vec(0u32..64, 0..300)) {
            let mut nodes: Vec<Plain> = (0..64).map(|_| Plain::default()).collect();
            let mut tree = RedBlackTree::default();
            let mut inside = std::collections::BTreeSet::new();
            for key in steps {
                if inside.remove(&key) {
                    tree.erase(&mut nodes, key);
                } else {
                    let (mut at, mut place) = (tree.root, None);
                    while at != NIL {
                        let side = if key < at { Side::Left } else { Side::Right };
                        place = Some((at, side));
                        at = child(&nodes, at, side);
                    }
                    tree.insert(&mut nodes, place, key);
                    inside.insert(key);
                }
                let mut seen = Vec::new();
                prop_assert!(!red(&nodes, tree.root));
                check(&nodes, tree.root, NIL, &mut seen);
                prop_assert_eq!(seen, inside.iter().copied().collect::<Vec<_>>());
            }
        }
    }
}
