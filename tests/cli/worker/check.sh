# What a worker's file allows, and what in it may not be meant.
mkdir -p notes
need jq git
cat >w.yaml <<'YAML'
sandbox:
  paths:
    notes: {root: ./notes}
    etc: {root: /etc}
  network: true
shell_rules:
  - {pattern: git, approval_required: false}
  - {pattern: git push}
  - {pattern: cat, approval_required: false, sandbox_paths: [notes]}
  - {pattern: cat}
YAML
"$PX" worker check w.yaml
"$PX" --json worker check w.yaml | jq -c '[.ok, .network, .shell_default, .warnings]'
"$PX" worker shell w.yaml -- cat notes/none 2>&1 | head -n 1
"$PX" --json worker shell w.yaml -- git --version | jq .ok
for command in 'git status' 'git push' 'cat notes/a' 'cat /etc/passwd' 'ls' 'git | cat' 'git a; ls' 'git push | cat /etc/x' 'git "a|b"' 'git $(ls)' 'git a > notes/x' 'git a > /etc/x' 'bash -c "git a"'; do "$PX" worker check w.yaml -- "$command"; done
"$PX" --json worker check w.yaml -- cat notes/../x
mkdir -p secret/sub && ln -s ../secret/sub notes/x
for command in 'cat notes/x/../s' 'cat notes/..' 'cat -fetc/passwd notes/a' 'cat --file=/etc/passwd' 'cat --file=notes/a'; do
    "$PX" worker check w.yaml -- "$command"
done
mkdir -p repo/.git/hooks
printf 'sandbox: {paths: {repo: {root: ./repo, mode: rw}}}\nshell_default: {approval_required: false}\n' >git.yaml
"$PX" worker check git.yaml
try "$PX" worker shell git.yaml -- touch repo/.git/hooks/x 2>&1
sed -i 's/}}}$/}}, git_writable: true}/' git.yaml
try "$PX" worker shell git.yaml -- touch repo/.git/hooks/x 2>&1
"$PX" policy check -v "$PWD/repo:/r" -v "$PWD/repo/.git:/r/.git:ro"
try "$PX" policy check -v "$PWD/repo:/r" -v "$PWD/repo/.git:/g:ro"
cat >box.yaml <<'YAML'
sandbox:
  paths:
    notes: {root: ./notes, mode: rw}
  network: {allow: [good.test, "192.0.2.7:443"], deny: [bad.test]}
  memory: 512m
  env: {TOKEN: secret, LANG: C}
  base: host
tool_rules:
  write_file: {approval_required: true}
  delete_file: {allowed: false}
  worker_call: {allowed: false}
workers: [w]
YAML
"$PX" worker check box.yaml
"$PX" --json worker check box.yaml | jq -c '[.network, .network_allow, .network_deny, .memory, .env, .base, .tools.shell, .tools.write_file, .tools.delete_file]'
echo hello >notes/a
"$PX" file read --worker box.yaml notes/a
says "$PX" file write --worker box.yaml --content x notes/a
says "$PX" file delete --worker box.yaml notes/a
says "$PX" worker call box.yaml w -- ls
cat notes/a
printf 'sandbox: {paths: {documents: {root: ./notes, suffixes: [.md, .PDF]}, repo: {root: ./repo}}}\n' >suffixes.yaml
"$PX" worker check suffixes.yaml
"$PX" --json worker check suffixes.yaml | jq -c .paths[]
