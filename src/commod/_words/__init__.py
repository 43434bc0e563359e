"""Every sentence about figures: facts go in as plain records, short and long wording comes out."""
