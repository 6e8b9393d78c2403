"""The frame of every recipe: data, settings, Trainer, checkpoints, results, card."""
