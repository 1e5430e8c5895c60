# A plain comment above a declaration, or behind one, becomes doxygen's; the first line of a header
# becomes the file's; what a docstring says by name (Threads: ...) becomes a paragraph of its own.
1s#^// (.*)$#/// \\file\n/// \1#
2,$s#^( *)//( |$)#\1///\2#
/^ *\/\/\//s#(///|[.;)]) (Threads|Blocks|Errors|Cost|Lifetime|Units|Source): #\1\n/// \\par \2\n/// #g
/^ *\/\/\//s#`([^`<>&]+)`#<code>\1</code>#g
/\b(return|if|for|while)\b/!s#([;,{}]) +// (.*)$#\1  ///< \2#
