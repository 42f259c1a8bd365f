# Scripts that their shells can read, with every option in them.
"$PX" completion bash >"$TMP/bash"
bash -n "$TMP/bash" && echo parses
for name in memory bind timeout net; do grep -q -- "--$name" "$TMP/bash" || echo "--$name is missing"; done
bash -c '. "$1"; COMP_WORDS=(px ex); COMP_CWORD=1; _px; echo "${COMPREPLY[@]}"
COMP_WORDS=(px exec --net l); COMP_CWORD=3; _px; echo "${COMPREPLY[@]}"
COMP_WORDS=(px exec --preset un); COMP_CWORD=3; _px; echo "${COMPREPLY[@]}"
COMP_WORDS=(px exec --timeo); COMP_CWORD=2; _px; echo "${COMPREPLY[@]}"
COMP_WORDS=(px sandbox g); COMP_CWORD=2; _px; echo "${COMPREPLY[@]}"
COMP_WORDS=(px pack ""); COMP_CWORD=2; _px; echo "${COMPREPLY[@]}"
COMP_WORDS=(px box s); COMP_CWORD=2; _px; echo "${COMPREPLY[@]}"
COMP_WORDS=(px completion ""); COMP_CWORD=2; _px; echo "${COMPREPLY[@]}"
COMP_WORDS=(px box signal x SIGUS); COMP_CWORD=4; _px; echo "${COMPREPLY[@]}"
COMP_WORDS=(px run --sa); COMP_CWORD=2; _px; echo "${COMPREPLY[@]}"
COMP_WORDS=(px test --frozen --a); COMP_CWORD=3; _px; echo "${COMPREPLY[@]}"
COMP_WORDS=(px run ap); COMP_CWORD=2; COMPREPLY=(); _px; echo "files: ${COMPREPLY[@]}"
COMP_WORDS=(px box exec --work-); COMP_CWORD=3; _px; echo "${COMPREPLY[@]}"' bash "$TMP/bash"
for shell in zsh fish; do
    "$PX" completion $shell >"$TMP/script"
    for word in start exec attach 'box list --names'; do grep -q -- "$word" "$TMP/script" || echo "$word is missing for $shell"; done
    ! command -v $shell >/dev/null || $shell -n "$TMP/script" || echo "$shell cannot read it"
done
# Every apostrophe in a help text is written as the shell wants it inside quotes: what is left are pairs.
! "$PX" completion zsh | sed "s/'\\\\''//g" | grep -n "^[^']*'[^']*\('[^']*'[^']*\)*\$"
! "$PX" completion fish | sed "s/\\\\'//g" | grep -n "^[^']*'[^']*\('[^']*'[^']*\)*\$"
"$PX" completion fish | grep -c '^complete -c px' | grep -c '[1-9]'
"$PX" completion zsh | head -1
says "$PX" completion
says "$PX" completion tcsh
