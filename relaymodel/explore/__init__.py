"""A page to play with: the model's curves behind sliders, in one HTML file that needs no server and no network."""

from relaymodel.explore.page import render, write_page
from relaymodel.explore.setting import Setting

__all__ = ["Setting", "render", "write_page"]
