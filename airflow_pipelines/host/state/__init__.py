"""The state of an incarnation: its transitions, its log, its clock, its options, and who else uses its storage."""
