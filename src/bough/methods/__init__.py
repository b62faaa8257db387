"""Methods: one paper a file. A file defines a function of its name, `World -> Run`."""

SHARED = """\
What a method does not set is the world's or Bough's, not the paper's. The mean of the loss is over tokens
(`normalizer`), where many papers, GRPO's among them, take the mean over paths: `normalizer.by=paths`. Tied groups are
left out of the computation (`filters`), which changes no gradient. The divergence or the entropy bonus is the world's
(`regularizers`). AdamW has the betas 0.9 and 0.95 and no weight decay, and the rate is constant (`optimizer`)."""
"""The differences from the papers that methods share, for `bough list` and docs/methods.md."""
