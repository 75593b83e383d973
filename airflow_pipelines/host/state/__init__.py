"""The state of an incarnation: its transitions, its log, its clock, its options, and the watch for other users of its storage."""
