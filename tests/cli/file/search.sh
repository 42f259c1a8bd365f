# Lines with a text, in files that may be read.
mkdir -p s/d && printf 'one\nTwo needle\nthree\n' >s/a.txt && printf 'Needle\n\033[31mneedle\n' >s/d/b.txt && printf 'needle\0' >s/binary && printf 'needle \377' >s/broken
echo needle >s/c.md && ln -s ../out.txt s/out.txt && echo needle >out.txt && printf 'needle%0400d\n' 7 >s/z.txt
f() { "$PX" file "$@" --root s=s; }
f search needle
echo --; f search NEEDLE s/d --ignore-case
echo --; f search needle --pattern '*.md'
echo --; "$PX" --json file search --root s=s:suffixes=.md needle
