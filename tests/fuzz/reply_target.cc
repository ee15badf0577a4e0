#include "coordinator/cluster/reply_wire.h"
#include "tests/fuzz/refusal.h"

namespace cairn::fuzz {

// A byte for the call, then its answer.
void reply(Bytes input) {
  const unsigned choice = take_choice(input);
  may_refuse_call([&] {
    Message message(input);
    switch (choice % 3) {
      case 0: read_reply(message.root<wire::ClosureResult>(), "/job:worker/task:0"); return;
      case 1: read_mark(message.root<wire::Shard::MarkResults>()); return;
      case 2: read_saved(message.root<wire::Shard::SaveResults>()); return;
    }
  });
}

}  // namespace cairn::fuzz
