# Whole or not at all; the mode stays, directories are made inside.
mkdir w
f() { "$PX" file "$@" --root w=w:rw; }
f write w/new/deep/a.txt --content 'hällo'
cat w/new/deep/a.txt && echo
chmod 640 w/new/deep/a.txt
printf 'from standard input\n' | f write w/new/deep/a.txt
cat w/new/deep/a.txt
stat -c %a w/new/deep/a.txt
ln -s new/deep w/link && f write w/link/b.txt --content b
ln -s a.txt w/new/deep/in.txt && f write w/new/deep/in.txt --content through && [ -L w/new/deep/in.txt ] && cat w/new/deep/a.txt && echo
f make-directory w/one/two && f make-directory w/one/two
f write w/empty --content '' && stat -c %s w/empty
printf '\377' | says f write w/bytes
find w | sort
