# Where the policy allows it, it is listed as missing and the run goes on.
as_user
need jq
"$PX" --json exec --limits try --memory 64m --cpus 0.5 -- echo RAN | jq -c '[.status, .stdout, [.isolation.missing[] | select(startswith("memory") or startswith("cpus")) | split(":")[0]]]'
"$PX" --json exec --preset task -- true | jq -c '[.isolation.missing[] | select(startswith("memory")) | split(":")[0]]'
