// States no expectation.
coppice::immovable unknown;
