# The diff has the bound of the output, the changes that of the disk.
need_changes
mkdir "$TMP/work"
"$PX" --json exec --output-limit 200 --changes "$TMP/work" -c 'cd /workspace; seq 1 1000 >long; echo 1 >short' |
    jq -c '[[.changed_files[].path], .diff_truncated, (.diff | length < 200), (.diff | contains("+++ b/short"))]'
"$PX" --json exec --disk 2m --changes "$TMP/work" -c 'cd /workspace; dd if=/dev/zero of=big bs=1024 count=1500 2>/dev/null && echo fits; dd if=/dev/zero of=/tmp/big bs=1024 count=1500 2>/dev/null || echo held; rm big' |
    jq -c '[.stdout, .limits_hit[].limit]'
"$PX" --json exec --changes "$TMP/work" -c 'cd /workspace; head -c 3000000 /dev/zero | tr "\0" x >large' | jq -r .diff
