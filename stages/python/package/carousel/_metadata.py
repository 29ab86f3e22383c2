"""A frame's metadata as a dict."""
import collections.abc


class Metadata(collections.abc.MutableMapping):
    """Small named values of a frame: bool, int, float, str, bytes. The object is a view that ends with its frame; dict(...) makes a copy
    that remains valid."""

    def __init__(self, frame):
        self._frame = frame

    def __getitem__(self, key):
        return self._frame._metadata_get(key)

    def __setitem__(self, key, value):
        self._frame._metadata_set(key, value)

    def __delitem__(self, key):
        self._frame._metadata_erase(key)

    def __iter__(self):
        return iter(self._frame._metadata_keys())

    def __len__(self):
        return len(self._frame._metadata_keys())

    def __repr__(self):
        return f"<carousel.Metadata of frame {self._frame.frame_number}: {dict(self)}>"
