# One object for each answer and each error, in the same envelope.
need jq
export PX_HOME=$TMP/home
mkdir "$TMP/demo"
cd "$TMP/demo"
("$PX" --json status || true) | jq -c '[.status, .message[:29], .details.code, .details.reason]'
"$PX" --json init | jq -c '[.status, .message, .details.created]'
("$PX" --json sync --frozen || true) | jq -c '[.status, .message, .details.code, .details.reason, .details.state]'
"$PX" --json sync | jq -c '[.status, .message, .details.action, .details.wrote_lock, .details.built_env, .details.state]'
"$PX" --json status | jq -c '[.status, .message, .context.kind, .lock.status, .env.status, .next_action.kind, .project.flags, (.details | keys)]'
printf '[tool.px]\npython = 3\n' >pyproject.toml
("$PX" --json status || true) | sed "s,$TMP,TMP,g" | jq -c '[.status, .message, .details.code]'
("$PX" --json sync extra || true) | jq -c '[.status, .details.code]'
