# Every refusal says what is allowed instead, and shows no path of the host.
mkdir in out && echo text >in/a.md && echo text >in/b.txt && echo secret >secret.md && ln -s ../secret.md in/out.md && ln -s .. in/up && mkfifo in/pipe.md
echo 123456789012345678901 >in/long.md && printf '\377\376' >in/binary.md && ln -s /etc in/etc && ln -s loop.md in/loop.md && ln -s b.txt in/sneak.md
f() { "$PX" file "$@" --root in=in:rw:suffixes=.md,.pdf:max=20 --root out=out 2>&1 | sed -n '1p;/^Fix:/,$s/^  - //p'; }
for path in /etc/passwd ../secret.md in/../secret.md in/../out/x in/out.md in/up/secret.md in/etc/passwd in/loop.md nope/x '' '~/x' in ./in/a.md 'in/../in/a.md'; do
    f read "$path"
done
for path in in/b.txt in/sneak.md in/long.md in/binary.md in/none.md in/a.md/x in/ in/pipe.md; do
    f read "$path"
done
for path in out/x.md in/x.txt in/out.md in/up/x.md in/pipe.md in/ /x.md; do
    f write "$path" --content x
done
f write in/a.md --content 123456789012345678901
f edit in/a.md --old nope --new x
f edit in/a.md --old t --new x
f list in --pattern '../*'
f list in/a.md
f search ''
"$PX" file read --root a=nonexistent a/x 2>&1 | sed -n 1p
ls -A out
cat secret.md in/a.md
"$PX" --json file read --root in=in ../x >json.out || echo "exit $?"
! grep -F "$TMP" json.out || echo 'it shows a path of the host'
