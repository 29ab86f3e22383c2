"""The two environment variables with which a campaign (tests/campaigns/run.py) repeats and lengthens a random test."""
import os
import random


def seed(usual=None):
    """CAROUSEL_TEST_SEED; without it `usual`, or a random number."""
    return int(os.environ.get("CAROUSEL_TEST_SEED") or usual or random.randrange(1, 1_000_000))


def scaled(usual):
    """`usual` kills or faults, multiplied by CAROUSEL_TEST_SCALE (1 if it is not set)."""
    return usual * max(1, int(os.environ.get("CAROUSEL_TEST_SCALE") or 1))
