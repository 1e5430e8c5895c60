// Does not say what it expects.
coppice::immovable unknown;
