"""Where the particles fly: field, material, decays."""
