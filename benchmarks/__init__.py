"""Speed, measured as ratios against peers in the same run."""
