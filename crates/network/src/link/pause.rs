//! Priority-based flow control (IEEE 802.1Q, 36): a node that has too much of a class waiting asks the other end of the link it
//! came by for a pause, and takes packets again when enough of it has left. What is on its way meanwhile needs headroom.

use super::CLASSES;

/// When the end of a link asks its beginning to pause.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pause {
    /// More than so many bytes of a class wait in the node, of what came by this link: it asks for a pause (XOFF).
    pub xoff: u64,
    /// No more than so many do: it takes packets again (XON). Not above `xoff`.
    pub xon: u64,
    /// So many bytes above `xoff` are kept; what finds no room there either is dropped by the node.
    pub headroom: u64,
    /// For which classes, a bit each. Packets of others are never held back, and have no room of their own.
    pub classes: u8,
}

impl Pause {
    /// Whether it is for a class.
    pub fn is_for(&self, class: u8) -> bool {
        self.classes.checked_shr(class.into()).is_some_and(|bits| bits & 1 == 1)
    }
}

/// What a waiting packet takes room of: of a class, of what came by a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Holds {
    /// The link's direction that it came by, by whatever number the platform gives it.
    pub came_by: u32,
    /// Its class there, below [`CLASSES`].
    pub class: u8,
}

/// What came by a link and waits in the node at its end, by class. For each of its inputs the answer says what to tell the
/// link's beginning, if anything.
#[derive(Clone, Default, Debug)]
pub struct Ingress {
    bytes: [u64; CLASSES],
    asked: u8,
}

impl Ingress {
    /// Bytes of a class that wait.
    pub fn bytes(&self, class: u8) -> u64 {
        self.bytes.get(usize::from(class)).copied().unwrap_or(0)
    }

    /// Whether there is room for a packet.
    pub fn has_room(&self, settings: &Pause, class: u8, bytes: u32) -> bool {
        self.bytes(class).saturating_add(u64::from(bytes)) <= settings.xoff.saturating_add(settings.headroom)
    }

    /// A packet takes room.
    pub fn enters(&mut self, class: u8, bytes: u32) {
        self.bytes[usize::from(class)] += u64::from(bytes);
    }

    /// A packet waits no longer.
    pub fn leaves(&mut self, class: u8, bytes: u32) {
        self.bytes[usize::from(class)] -= u64::from(bytes);
    }

    /// Whether the other end is to be told something: to pause (true), or to send again. Without settings there is nothing to pause for.
    pub fn tells(&mut self, settings: Option<&Pause>, class: u8) -> Option<bool> {
        let (bit, bytes) = (1 << class, self.bytes(class));
        let asked = self.asked & bit != 0;
        let asks = match settings {
            Some(settings) => bytes > if asked { settings.xon } else { settings.xoff },
            None => false,
        };
        self.asked = if asks { self.asked | bit } else { self.asked & !bit };
        (asks != asked).then_some(asks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asks_above_one_threshold_and_goes_on_below_the_other() {
        let settings = Pause { xoff: 300, xon: 100, headroom: 200, classes: 1 << 3 };
        let mut ingress = Ingress::default();
        let mut told = Vec::new();
        for (number, change) in [200_i64, 100, 100, 100, -300, -100, -1, 201, 1].into_iter().enumerate() {
            let bytes = change.unsigned_abs() as u32;
            if change > 0 {
                assert!(ingress.has_room(&settings, 3, bytes));
                ingress.enters(3, bytes);
            } else {
                ingress.leaves(3, bytes);
            }
            told.extend(ingress.tells(Some(&settings), 3).map(|asks| (number, asks)));
        }
        assert_eq!(told, [(2, true), (5, false), (8, true)]);
        assert_eq!(ingress.bytes(3), 301);
        assert!(ingress.has_room(&settings, 3, 199) && !ingress.has_room(&settings, 3, 200));
        assert_eq!(ingress.tells(None, 3), Some(false), "whoever has asked takes it back");
        assert_eq!(ingress.tells(None, 3), None);
        assert!(settings.is_for(3) && !settings.is_for(2) && !settings.is_for(9));
    }
}
