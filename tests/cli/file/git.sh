# What the host's git obeys is read and not written, however it is named, unless told otherwise.
mkdir -p p/.git/hooks p/sub q/store/real/hooks t/bare/hooks && echo x >p/a && echo ref >p/.git/HEAD
ln -s .git p/way
ln -s store/real q/.git
echo 'gitdir: bare' >t/.git
f() { "$PX" file "$@" --root p=p:rw --root q=q:rw --root t=t:rw; }
says f write p/.git/hooks/pre-commit --content x
for path in p/.git p/.GIT/x p/way/config p/sub/.git/config q/.git q/.git/hooks/x q/store/real/hooks/x q/store t/.git \
    t/bare/config t/bare; do
    echo "$path: $(f can-write "$path") $(f can-read "$path")"
    { f write "$path" --content x || f delete "$path" || f move "$path" p/moved || f move p/a "$path" ||
        f make-directory "$path"; } 2>/dev/null || continue
    echo "$path was written"
done
f read p/.git/HEAD
find p q t | sort
f write p/.gitignore --content x
f write q/store/x --content x
f write p/.git/hooks/pre-commit --content x --git-writable
f delete q/.git --git-writable
printf 'sandbox: {paths: {p: {root: ./p, mode: rw}}}\n' >w.yaml
says "$PX" file write --worker w.yaml p/.git/config --content x
says "$PX" file write --worker w.yaml --git-writable p/.git/config --content x
