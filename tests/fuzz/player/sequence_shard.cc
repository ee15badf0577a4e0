// The calls of a sequence to a shard.
#include "core/graph/wire/wire.h"
#include "tests/core/some_rules.h"
#include "tests/fuzz/player/sequence_parts.h"
#include "tests/fuzz/player/sequence_player.h"

namespace cairn::fuzz {
namespace {

kj::ArrayPtr<const kj::byte> as_data(const void* bytes, std::size_t size) {
  return {static_cast<const kj::byte*>(bytes), size};
}

}  // namespace

void SequencePlayer::configure_shard(wire::Shard::Client shard, std::uint32_t index) {
  auto request = shard.configureRequest();
  request.setSession(script_.number(attacked_.session));
  request.setLayoutVersion(script_.number(layout_));
  request.setSeed(42);
  request.setEpoch(script_.number(epoch_));
  const auto& variables = played_variables();
  const auto count = static_cast<unsigned>(script_.lies() ? script_.below(variables_) : variables_);
  auto tables = request.initTables(count);
  for (unsigned v = 0; v < count; ++v) {
    VariableSpec spec = *variables[v].spec;
    if (script_.lies()) spec.name = script_.name(spec.name);
    if (script_.lies()) spec.hashed = !spec.hashed;
    tables[v].setVariable(static_cast<std::uint32_t>(script_.number(v)));
    wire::write(tables[v].initSpec(), spec);
    const UpdateRule adam{RuleKind::kAdam, {0.9f, 0.999f, 1e-7f}};
    UpdateRule rule = variables[v].rule;
    if (script_.lies()) rule = script_.below(2) == 0 ? adam : testing::own_adam();
    wire::write(tables[v].initRule(), rule);
    const std::int64_t half = spec.rows() / 2;
    auto part = tables[v].initParts(1)[0];
    part.setVariable(v);
    part.setIndex(static_cast<std::uint32_t>(script_.number(index)));
    part.setBegin(static_cast<std::int64_t>(
        script_.number(static_cast<std::uint64_t>(index == 0 ? 0 : half))));
    part.setEnd(static_cast<std::int64_t>(
        script_.number(static_cast<std::uint64_t>(index == 0 ? half : spec.rows()))));
  }
  keep(request.send());
}

void SequencePlayer::open_shard(wire::Shard::Client shard) { keep(shard.openRequest().send()); }

void SequencePlayer::announce(wire::Shard::Client shard) {
  auto request = shard.announceRequest();
  request.setSession(script_.number(attacked_.session));
  request.setClosuresBelow(script_.number(1 << 16));
  request.setSettledBelow(script_.number(0));
  keep(request.send());
}

void SequencePlayer::fence(wire::Shard::Client shard) {
  auto request = shard.fenceRequest();
  request.setSession(script_.number(attacked_.session));
  request.setNewest(script_.number(0));
  request.initAlive(1).set(0, script_.number(incarnation_));
  keep(request.send());
}

void SequencePlayer::write_step(wire::Step::Builder out) {
  out.setSession(script_.number(attacked_.session));
  out.setSentLayout(script_.number(layout_));
  out.setClosure(script_.number(closure_));
  out.setIncarnation(script_.number(incarnation_));
  out.setEpoch(script_.number(epoch_));
  out.setPushNumber(static_cast<std::uint32_t>(script_.number(0)));
}

void SequencePlayer::write_place(wire::Place::Builder out, std::uint64_t bytes) {
  out.setOffset(script_.number(8 * script_.byte()));
  out.setBytes(script_.number(bytes));
}

void SequencePlayer::pull(Line& line) {
  auto request = service<wire::Shard>(line).pullRequest();
  write_step(request.initStep());
  const unsigned count = 1 + script_.below(3);
  auto headers = request.initHeaders(count);
  std::vector<std::int64_t> ids;
  std::uint64_t bytes = 0;
  for (unsigned i = 0; i < count; ++i) {
    const auto& variable = played_variables()[script_.below(variables_)];
    headers[i].setVariable(static_cast<std::uint32_t>(script_.number(variable.id)));
    headers[i].setPart(
        static_cast<std::uint32_t>(script_.number(line.connection->peer().endpoint - 1)));
    const bool whole = !variable.spec->hashed && script_.below(2) == 0;
    headers[i].setWhole(whole);
    headers[i].setWritten(script_.number(0));
    const std::uint64_t rows = whole ? static_cast<std::uint64_t>(variable.spec->rows() / 2) : 2;
    if (!whole) {
      headers[i].setRows(static_cast<std::uint32_t>(script_.number(2)));
      for (std::int64_t id = 0; id < 2; ++id)
        ids.push_back(static_cast<std::int64_t>(script_.number(static_cast<std::uint64_t>(id))));
    }
    bytes += rows * static_cast<std::uint64_t>(variable.spec->dim()) * 4;
  }
  request.setCopiesOf(script_.number(0));
  if (script_.lies()) request.setEncoding(static_cast<wire::Encoding>(script_.below(3)));
  const bool shares = line.connection->peer().shared != nullptr;
  if (shares && script_.below(2) == 0)
    write_place(request.initIdsAt(), ids.size() * 8);
  else
    request.setIds(as_data(ids.data(), ids.size() * 8));
  if (shares && script_.below(2) == 0) write_place(request.initValuesAt(), bytes);
  keep(request.send());
}

void SequencePlayer::push(Line& line) {
  if (script_.below(3) != 0) ++closure_;  // else another push, piece or slice of the same one
  auto request = service<wire::Shard>(line).pushRequest();
  write_step(request.initStep());
  request.initPulled().setLineage(script_.number(0));
  const auto& variables = played_variables();
  const auto& variable = variables[script_.below(variables_)];
  auto header = request.initHeaders(1)[0];
  header.setVariable(static_cast<std::uint32_t>(script_.number(variable.id)));
  header.setPart(static_cast<std::uint32_t>(script_.number(line.connection->peer().endpoint - 1)));
  header.setLearningRate(0.1f);
  wire::write(header.initRule(),
              script_.lies()
                  ? UpdateRule{static_cast<RuleKind>(script_.below(kRuleKindCount)), {0.1f, 1e-7f}}
                  : variable.rule);
  const bool whole = !variable.spec->hashed && script_.below(2) == 0;
  const std::uint64_t rows = whole ? static_cast<std::uint64_t>(variable.spec->rows() / 2) : 2;
  header.setWhole(whole);
  std::vector<std::int64_t> ids;
  if (!whole) {
    header.setRows(static_cast<std::uint32_t>(script_.number(2)));
    for (std::int64_t id = 0; id < 2; ++id)
      ids.push_back(static_cast<std::int64_t>(script_.number(static_cast<std::uint64_t>(id))));
  }
  request.setIds(as_data(ids.data(), ids.size() * 8));
  const std::vector<float> values(rows * static_cast<std::uint64_t>(variable.spec->dim()), 0.5f);
  if (line.connection->peer().shared != nullptr && script_.below(2) == 0)
    write_place(request.initValuesAt(1)[0], values.size() * 4);
  else
    request.setValues(as_data(values.data(), values.size() * 4));
  if (script_.below(2) == 0) {
    request.setPieces(static_cast<std::uint32_t>(script_.number(2)));
    request.setPiece(static_cast<std::uint32_t>(script_.number(script_.below(2))));
  } else {
    request.setSlice(static_cast<std::uint32_t>(script_.number(script_.below(3))));
  }
  if (script_.lies()) request.setEncoding(static_cast<wire::Encoding>(script_.below(3)));
  keep(request.send());
}

void SequencePlayer::checkpoint(wire::Shard::Client shard) {
  const unsigned what = script_.below(6);
  if (what == 0) {
    auto request = shard.markRequest();
    request.setAttempt(script_.number(++mark_));
    request.setBase(script_.number(mark_ - 1));
    request.setTrack(script_.below(2) == 0);
    return keep(request.send());
  }
  if (what <= 2) {
    auto request = shard.saveRequest();
    request.setAttempt(script_.number(mark_));
    request.setFolder(script_.name(attacked_.checkpoints));
    return keep(request.send());
  }
  if (what == 3) {
    auto request = shard.dropMarkRequest();
    request.setAttempt(script_.number(mark_));
    return keep(request.send());
  }
  auto request = shard.restoreRequest();
  request.setFolder(script_.name(attacked_.checkpoints));
  auto databases = request.initDatabases(2);
  for (unsigned i = 0; i < 2; ++i) databases.set(i, script_.name(str("ps-0-shard-", i)));
  auto applied = request.initApplied();
  applied.setLowWatermark(script_.number(0));
  auto range = applied.initClosures(1)[0];
  range.setBegin(script_.number(1));
  range.setEnd(script_.number(2));
  if (script_.below(2) == 0)
    request.initVariables(1).set(0, static_cast<std::uint32_t>(script_.number(script_.below(3))));
  keep(request.send());
}

}  // namespace cairn::fuzz
