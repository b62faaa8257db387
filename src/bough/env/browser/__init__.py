"""A Chromium that plays the pages of MiniWoB++: processes, pages, elements, actions, and scripted solutions."""
