//! The choice of a volume among all that is in a disk.

use super::choice::Choice;
use super::node::{Layers, Node};
use std::fmt;
use std::sync::Arc;
use undercroft_block::BlockDevice;

/// How much is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// What volumes may be in, and volumes.
    Volumes,
    /// All that is known.
    Everything,
}

/// A device that was chosen.
#[derive(Clone, Debug)]
pub struct Selected {
    /// Its number among the [nodes](Layers::nodes).
    pub node: usize,
    /// The device.
    pub device: Arc<dyn BlockDevice>,
}

/// Why no device was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unselected {
    /// There is none that the choice names.
    NotThere,
    /// There are several that it names, or several volumes in the one that it names.
    Several,
    /// That which it names cannot be opened.
    Fault(String),
}

impl Layers {
    /// The volume that a choice means: what it names, if that is a volume or has no volume inside, else the
    /// only volume in it. `as_it_is` takes what is named, whatever is in it.
    ///
    /// # Errors
    /// There is none, or there are several. Without a choice, what was opened is taken then.
    pub fn select(&self, choice: &Choice, as_it_is: bool) -> Result<Selected, Unselected> {
        let named: Vec<_> =
            (0..self.nodes.len()).filter(|node| self.is_top(*node, choice)).collect();
        let volumes: Vec<_> = match as_it_is {
            true => named.clone(),
            false => {
                let in_named =
                    |node: &usize| self.fits(*node, choice) && self.nodes[*node].is_volume();
                (0..self.nodes.len()).filter(in_named).collect()
            }
        };
        match (volumes.as_slice(), named.as_slice()) {
            ([volume], _) => self.selected(*volume),
            (_, []) => Err(Unselected::NotThere),
            // For what can do without a volume, and for an error that lists what there is.
            (_, [root, ..]) if choice.is_empty() => self.selected(*root),
            ([], [only]) => match self.fault_below(*only) {
                Some(fault) => Err(Unselected::Fault(fault.to_owned())),
                None => self.selected(*only),
            },
            _ => Err(Unselected::Several),
        }
    }

    /// Whether a device is the one that a choice names, or in it.
    fn fits(&self, node: usize, choice: &Choice) -> bool {
        let way = self.way(node);
        let named = way.iter().map(|node| node.is_named_by(choice));
        let [mut partition, mut logical] = [choice.partition.is_none(), choice.logical.is_none()];
        for (is_partition, is_logical) in named {
            partition |= is_partition;
            logical |= is_logical;
        }
        partition && logical
    }

    /// Whether a device is the one that a choice names.
    fn is_top(&self, node: usize, choice: &Choice) -> bool {
        let above = self.nodes[node].parent;
        self.fits(node, choice) && above.is_none_or(|above| !self.fits(above, choice))
    }

    fn selected(&self, node: usize) -> Result<Selected, Unselected> {
        match &self.nodes[node].device {
            Ok(device) => Ok(Selected { node, device: Arc::clone(device) }),
            Err(fault) => Err(Unselected::Fault(fault.clone())),
        }
    }

    /// Why there may be no volume in a device that might have one.
    fn fault_below(&self, node: usize) -> Option<&str> {
        let fault = self.nodes[node].fault.as_deref();
        if fault.is_some() || !self.has_inside(node) {
            return fault;
        }
        let inside = self.nodes.iter().filter(|other| other.parent == Some(node));
        inside.filter_map(Node::why_not).next()
    }
}

impl Node {
    /// Why it cannot be opened, or nothing be made of what is on it.
    #[must_use]
    pub fn why_not(&self) -> Option<&str> {
        self.device.as_ref().err().or(self.fault.as_ref()).map(String::as_str)
    }
}

impl fmt::Display for Unselected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotThere => "there is none of this name",
            Self::Several => "there are several",
            Self::Fault(fault) => fault,
        })
    }
}
