# Turns a plain comment above or behind a declaration into doxygen's form, the first line of a header
# into the description of the file, and each named line of a docstring (Threads: ...) into a paragraph.
1s#^// (.*)$#/// \\file\n/// \1#
2,$s#^( *)//( |$)#\1///\2#
/^ *\/\/\//s#(///|[.;)]) (Threads|Blocks|Errors|Cost|Lifetime|Units|Source): #\1\n/// \\par \2\n/// #g
/^ *\/\/\//s#`([^`<>&]+)`#<code>\1</code>#g
/\b(return|if|for|while)\b/!s#([;,{}]) +// (.*)$#\1  ///< \2#
