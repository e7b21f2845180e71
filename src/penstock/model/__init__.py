"""The data of Penstock: elements, punctuation, batches, schemas, properties, TDBs and snapshots."""
