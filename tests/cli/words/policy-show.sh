# Every preset, as JSON; the values of one; options on top.
need jq
for name in default project session worker untrusted task; do
    "$PX" policy show --preset $name | jq -r .preset
done
"$PX" policy show --preset untrusted | jq -c '[.memory, .pids, .timeout, .net, .limits, (.tmpfs | map(.noexec) | all)]'
"$PX" policy show | jq -c '[.preset, .hostname, .user, .net, .require, .nofile]'
"$PX" policy show -m 1g -v /etc:/x:ro -e A=b | jq -c '[.memory, .bind, .env]'
says "$PX" policy show --preset nosuch
says "$PX" policy nosuch
says "$PX" policy
says "$PX" policy export --to oci --timeout 5x
says "$PX" policy check --tiemout 5
