# Scripts that their shells can read, with every option in them.
"$PX" completion bash >"$TMP/bash"
bash -n "$TMP/bash" && echo parses
for name in memory bind timeout net; do grep -q -- "--$name" "$TMP/bash" || echo "--$name is missing"; done
bash -c '. "$1"; COMP_WORDS=(px ex); COMP_CWORD=1; _px; echo "${COMPREPLY[@]}"
COMP_WORDS=(px exec --net l); COMP_CWORD=3; _px; echo "${COMPREPLY[@]}"
COMP_WORDS=(px exec --preset un); COMP_CWORD=3; _px; echo "${COMPREPLY[@]}"
COMP_WORDS=(px exec --timeo); COMP_CWORD=2; _px; echo "${COMPREPLY[@]}"
COMP_WORDS=(px sandbox g); COMP_CWORD=2; _px; echo "${COMPREPLY[@]}"
COMP_WORDS=(px box s); COMP_CWORD=2; _px; echo "${COMPREPLY[@]}"' bash "$TMP/bash"
"$PX" completion fish | grep -c '^complete -c px' | grep -c '[1-9]'
"$PX" completion zsh | head -1
says "$PX" completion
says "$PX" completion tcsh
