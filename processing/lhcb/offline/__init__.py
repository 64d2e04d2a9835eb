"""Tools that no node needs: simulation, validation, event display. The chain never imports them."""
