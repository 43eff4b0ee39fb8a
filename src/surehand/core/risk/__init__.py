"""What the words on a control, in an address or in a form give away (spec §6.2): readings, lists, categories."""
