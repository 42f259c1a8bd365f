# The git directory of a root in the box of a worker: a directory, a file that names it, a link.
mkdir -p dir/.git/hooks file/deep/bare/trees/one file/deep/bare/hooks file/work link/store/real bare/objects
echo ref >bare/HEAD
echo 'gitdir: deep/bare/trees/one' >file/.git
echo '../..' >file/deep/bare/trees/one/commondir
ln -s store/real link/.git
cat >w.yaml <<'YAML'
sandbox:
  paths:
    dir: {root: ./dir, mode: rw}
    file: {root: ./file, mode: rw}
    bare: {root: ./bare, mode: rw}
shell_default: {approval_required: false}
YAML
cat >link.yaml <<'YAML'
sandbox: {paths: {link: {root: ./link, mode: rw}}}
shell_default: {approval_required: false}
YAML
sh() { "$PX" worker shell "$@" 2>&1 | head -n 1; }
for path in dir/.git/hooks/x dir/.git/config file/.git/x file/deep/bare/hooks/x file/deep/bare/trees/one/x bare/config; do
    sh w.yaml -- touch "$path"
done
for path in dir/.git file/.git file/deep file/deep/bare; do sh w.yaml -- mv "$path" "${path%/*}/moved"; done
sh w.yaml -- rm -r dir/.git
sh w.yaml -- ln -sfn /tmp file/.git
sh w.yaml -- touch dir/new file/new file/deep/new file/work/new
find dir file bare | sort
try "$PX" worker shell link.yaml -- touch link/x 2>&1
sed -i 's/}}}$/}}, git_writable: true}/' link.yaml
try "$PX" worker shell link.yaml -- touch link/.git/x 2>&1
