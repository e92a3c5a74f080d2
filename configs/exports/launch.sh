#!/usr/bin/env bash
# @HEADER@
#
#   ./@NAME@
#       starts the plan's server and stays; Ctrl-C ends it and everything it started
#   ./@NAME@ MODEL PORT NAME [FLAGS...]
#       another one: its model, its port, its name for clients, and vLLM's own flags, for example
#       ./@NAME@ ORG/MODEL 8001 second --max-model-len 16384 --limit-mm-per-prompt '{"image":4,"video":0}'
#
# Flags are words of their own; one word with all of them, as older scripts want it, is split at blanks. The plan's
# flags are for its own model and are not used for another one.
#
# Needs vLLM's environment (PATH=/path/to/vllm/bin:$PATH), curl, setsid and bash 4.2 or newer. The log is in
# LOG_FOLDER, or in ~/.local/state/mai-server/logs, every line with its time. The key is VLLM_API_KEY, or one that is
# made now; either way it goes into a file of mode 0600 beside the log, never onto a command line, where everybody
# could read it. A server that does not heed SIGTERM is killed after STOP_SECONDS (10).

# Functions that only traps call: unused to some versions of shellcheck, unreachable to others.
# shellcheck disable=SC2317,SC2329
set -euo pipefail
umask 077

# @PLAN@

write_gate() { # FOLDER: the module that asks for the key on every path; vLLM alone guards some of them
  cat >"$1/mai_gate.py" <<'MAI_GATE'
# @GATE@
MAI_GATE
}

say() { printf '%(%F %T)T launch: %s\n' -1 "$*" >&2 || true; }
fail() { say "$*"; exit 1; }

stamp() { # copies its input to the screen and the log, each line with its time; ends when the last writer does
  trap '' INT TERM HUP PIPE
  local line text
  while IFS= read -r line || [[ -n $line ]]; do
    printf -v text '%(%F %T)T %s' -1 "$line"
    printf '%s\n' "$text" >>"$log"
    printf '%s\n' "$text" 2>/dev/null || true
  done
}

answers() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
alive() { kill -0 -- "-$server" 2>/dev/null; }

stop() { # every process of the server's session: vLLM's engine outlives a server that is killed alone
  trap '' INT TERM HUP EXIT
  [[ -n $server ]] || return 0
  for _ in {1..20}; do # its session exists a moment after its process
    if alive || ! kill -0 "$server" 2>/dev/null; then break; fi
    sleep 0.05
  done
  if alive; then
    say "stopping $name"
    kill -TERM -- "-$server" 2>/dev/null || true
    for ((tenth = 0; tenth < ${STOP_SECONDS:-10} * 10; tenth++)); do
      alive || break
      sleep 0.1
    done
    # vLLM can swallow a SIGTERM while it starts.
    kill -KILL -- "-$server" 2>/dev/null || true
  fi
  server=
  for _ in {1..20}; do # the last lines
    kill -0 "$stamper" 2>/dev/null || break
    sleep 0.1
  done
}

healthy() { curl --silent --fail --output /dev/null --max-time 5 "http://127.0.0.1:$port/health"; }

talks() { # /health says that the engine lives; only an answer says that the model works
  printf 'Authorization: Bearer %s\n' "$VLLM_API_KEY" | curl --silent --show-error --fail --output /dev/null \
    --max-time 300 --header @- --header 'Content-Type: application/json' \
    --data "{\"model\":\"$name\",\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"max_tokens\":1}" \
    "http://127.0.0.1:$port/v1/chat/completions"
}

launch() { # MODEL PORT NAME FLAGS...
  local model=$1
  port=$2 name=$3
  shift 3
  if ! [[ $port =~ ^[0-9]{1,5}$ ]] || ((port < 1 || port > 65535)); then fail "$port is no port"; fi
  [[ $name =~ ^[A-Za-z0-9._/:-]+$ ]] || fail "the name for clients may hold letters, digits and . _ / : - only"
  local tool
  for tool in curl setsid; do
    command -v "$tool" >/dev/null || fail "$tool is needed"
  done
  command -v "${program[0]}" >/dev/null || fail "${program[0]} is not in PATH: put vLLM's environment there"
  # vLLM finds that only after loading the model, and two servers can even share a port without a word.
  ! answers "$port" || fail "something already answers on port $port"

  local folder=${LOG_FOLDER:-${XDG_STATE_HOME:-$HOME/.local/state}/mai-server/logs}
  mkdir -p "$folder"
  printf -v log '%s/%s-%s-%(%Y%m%d-%H%M%S)T.log' "$folder" "${name//\//-}" "$port" -1
  local key_file=$folder/${name//\//-}-$port.key
  VLLM_API_KEY=${VLLM_API_KEY:-$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')}
  mkdir -p "$folder/gate"
  write_gate "$folder/gate"
  export VLLM_API_KEY PYTHONUNBUFFERED=1 PYTHONPATH=$folder/gate
  printf '%s\n' "$VLLM_API_KEY" >"$key_file"
  chmod 600 "$key_file"

  say "starting $name on http://127.0.0.1:$port/v1"
  say "log: $log"
  say "key: export MAI_AGENT_API_KEY=\$(cat $(printf '%q' "$key_file"))"
  local wanted='' out
  trap 'wanted=130' INT # nothing may come between the start and knowing whom to stop
  trap 'wanted=143' TERM HUP
  exec {out}> >(stamp)
  stamper=$!
  setsid "${program[@]}" "$model" --served-model-name "$name" --host 127.0.0.1 --port "$port" "$@" \
    >&"$out" 2>&1 </dev/null {out}>&- &
  server=$!
  exec {out}>&-
  trap 'stop; exit 130' INT
  trap 'stop; exit 143' TERM HUP
  trap stop EXIT
  [[ -z $wanted ]] || exit "$wanted"

  local begin=$SECONDS said=0
  until healthy; do
    kill -0 "$server" 2>/dev/null || gone
    if ((SECONDS - said >= 60)); then
      said=$SECONDS
      say "not ready yet after $((SECONDS - begin)) s (a first start downloads the model); the log says how far it is"
    fi
    pause 1
  done
  talks || talks || fail "the server is healthy, but the model does not answer: see $log"
  say "ready after $((SECONDS - begin)) s: $name at http://127.0.0.1:$port/v1"
  gone
}

pause() { sleep "$1" & wait $!; } # unlike sleep alone it lets signals through at once

gone() { # waits for its end; nobody asked for it, so it is a failure also with status 0, as when vLLM's engine dies
  local status=0
  wait "$server" || status=$?
  say "the server ended by itself (exit status $status); the end of $log says why"
  exit 1
}

server=
trap '' PIPE # a screen that went away must not keep the server from being stopped
if (($# == 0)); then
  plan_model
  launch "$model" "$plan_port" "$plan_name" "${plan_flags[@]}"
elif (($# >= 3)); then
  model=$1 port=$2 name=$3
  shift 3
  if (($# == 1)) && [[ $1 == -*[[:blank:]]* ]]; then
    read -ra words <<<"$1"
    set -- "${words[@]}"
  fi
  launch "$model" "$port" "$name" "${common_flags[@]}" "$@"
else
  say "usage: ${0##*/} [MODEL PORT NAME [FLAGS...]]"
  exit 2
fi
