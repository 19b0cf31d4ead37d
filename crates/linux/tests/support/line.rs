//! Two hosts with a middle between.

use weftwire_testbed::Namespace;

/// `left` (a0, 10.9.0.1) - m1 `middle` m2 - (b0, 10.9.0.2) `right`.
pub struct Line {
    pub left: Namespace,
    pub middle: Namespace,
    pub right: Namespace,
}

impl Line {
    pub fn new() -> Line {
        let new = || Namespace::new().expect("root can make namespaces");
        let line = Line { left: new(), middle: new(), right: new() };
        line.left.join(("a0", "02:00:00:00:00:a0"), &line.middle, ("m1", "02:00:00:00:00:01")).unwrap();
        line.right.join(("b0", "02:00:00:00:00:b0"), &line.middle, ("m2", "02:00:00:00:00:02")).unwrap();
        line.left.exec("ip address add 10.9.0.1/24 dev a0").unwrap();
        line.right.exec("ip address add 10.9.0.2/24 dev b0").unwrap();
        line
    }

    /// Switches all offloads of all four ends on or off.
    pub fn set_offloads(&self, on: bool) {
        for (namespace, interface) in
            [(&self.left, "a0"), (&self.middle, "m1"), (&self.middle, "m2"), (&self.right, "b0")]
        {
            namespace.set_offloads(interface, on).unwrap();
        }
    }
}
