# One object; its status is the exit status; every row has a proof or a reason.
need jq
status=0
"$PX" doctor --json >all || status=$?
jq -c --argjson status "$status" '[.schema, .full == (.tier == "full"), $status == (if .full then 0 else 1 end)]' all
jq -c 'keys' all
jq -c '.rows[0] | keys' all
jq -c '[.rows[] | select(.state == "enforced" and .proof.forbidden == null and .proof.permitted == null)]' all
jq -c '[.rows[] | select(.state != "enforced" and .why == null)]' all
jq -c '[.rows[].state] | unique - ["absent", "degraded", "enforced"]' all
jq -c '[.rows[].needed_for] | unique - ["full", "landlock", "limits", "network", "nice to have"]' all
jq -c '[.rows[].group] | unique' all
jq -c '[.presets[].preset], [.tiers[].require]' all
jq -c '[.presets[], .tiers[] | select((.starts and .tier == null) or (.starts | not) and (.code == null or .why == null))]' all
wc -l <all
