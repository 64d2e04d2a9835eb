"""Images: random ones, shapes, likenesses of real ones, and files."""
