# Files only, sorted, hidden ones too; no link to a directory is entered.
mkdir -p a/sub/.git b && touch a/one.md a/.hidden a/sub/two.md a/sub/.git/config b/three.txt secret
ln -s sub a/dir && ln -s one.md a/in.md && ln -s ../secret a/out.md && mkfifo a/pipe && touch $'a/new\nline' $'a/es\033c' $'a/bad\377'
f() { "$PX" file "$@" --root a=a --root b=b; }
f list
echo --; f list a --pattern '*.md'
echo --; f list a --pattern '**/*.md'
echo --; f list a/sub --directories
echo --; f list a/dir --exclude .git
echo --; f list a --exclude '**/.git' --exclude '*[!.]*.md' --directories
echo --; f list --max-results 2
echo --; f list a --pattern '*/'
echo --; f list --pattern '**/'
echo --; "$PX" --json file list --root a=a a --pattern 'n*' | sed 's/"modified":[0-9]*/"modified":0/'
