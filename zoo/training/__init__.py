"""What all recipes share: data, the run as files, Trainer, checkpoints, results, card."""
