#include "coordinator/cluster/reply_wire.h"
#include "serving/follow/shard_answers.h"
#include "tests/fuzz/refusal.h"

namespace cairn::fuzz {
namespace {

// A shard's tables, as a reader has them.
serving::ShardDescription description() {
  serving::ShardDescription made;
  made.parts[{0, 0}] = {
      std::make_shared<const VariableSpec>(VariableSpec{.name = "w", .shape = {8, 2}}), {2, 6}};
  return made;
}

}  // namespace

// A byte for the call, then its answer.
void reply(Bytes input) {
  const unsigned choice = take_choice(input);
  may_refuse_call([&] {
    Message message(input);
    switch (choice % 5) {
      case 0: read_reply(message.root<wire::ClosureResult>(), "/job:worker/task:0"); return;
      case 1: read_mark(message.root<wire::Shard::MarkResults>()); return;
      case 2: read_saved(message.root<wire::Shard::SaveResults>()); return;
      case 3: serving::read_description(message.root<wire::Shard::DescribeResults>()); return;
      case 4:
        serving::read_changes(message.root<wire::Shard::ChangesResults>(), description());
        return;
    }
  });
}

}  // namespace cairn::fuzz
