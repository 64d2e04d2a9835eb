"""Events of kaon decays in the RICH of NA62, with truth."""
