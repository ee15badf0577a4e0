// A lane's mirror and store, and the ps that its variables live on: real ones, over a simulated
// network.
#pragma once
#include <gmock/gmock.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/ps/server/server_fixture.h"
#include "worker/rows/mirror.h"
#include "worker/rows/remote_step.h"

namespace cairn::worker {

using ps::Floats;
using ps::Ids;

class MirrorTest : public testing::Test {
 protected:
  ~MirrorTest() noexcept override {}
  static constexpr std::uint64_t kSession = ps::ShardHarness::kSession;
  static constexpr std::uint32_t kServers = 2;

  // Each variable is dealt out to the shards of both ps, in as many parts as it has rows for.
  void use(const UpdateRule& rule, const std::vector<Shape>& shapes,
           RowEncoding encoding = RowEncoding::kRaw, ShardLinkOptions link = {}) {
    layout = std::make_shared<Layout>();
    layout->version = 1;
    for (std::uint32_t i = 0; i < kServers; ++i) {
      start(i, 100 + i);
      layout->shards.push_back({{i, servers[i]->address().str(), 1, 100 + i}, {}, 1});
    }
    for (const Shape& shape : shapes) {
      const auto id = static_cast<VariableId>(layout->variables.size());
      auto spec = ps::variable(str("v", id), shape, Initializer::uniform(-1, 1));
      VariableLayout made{id, spec, rule_slots(rule).empty() ? UpdateRule{} : rule, {}};
      for (const RowRange& rows : split_rows(spec->rows(), kServers))
        made.parts.push_back({static_cast<ShardId>(made.parts.size()), rows});
      layout->variables.push_back(std::move(made));
    }
    for (std::uint32_t i = 0; i < kServers; ++i) configure(i);
    store = std::make_unique<RemoteStore>(reactor, network.host("worker"), link);
    LaneIdentity identity;
    identity.hello = ps::hello_to(0);
    identity.hello.session = kSession;
    identity.encoding = this->encoding = encoding;
    store->identify(identity);
    store->set_layout(layout);
    for (const VariableLayout& one : layout->variables) all.push_back(one.id);
    context.session = kSession;
    context.sent_layout = 1;
    context.incarnation = 1;
  }

  void start(std::uint32_t i, std::uint64_t incarnation) {
    auto options = ps::server_options(str("sim://ps", i), 1);
    options.index = i;
    options.incarnation = incarnation;
    servers[i].reset();
    servers[i] = std::make_unique<ps::PsServer>(reactor, network.host(str("ps", i)), *offload,
                                                *rows, options);
  }
  void configure(std::uint32_t i) {
    chiefs[i] =
        std::make_unique<ps::ShardClient>(reactor, network.host("chief"), servers[i]->address());
    std::vector<ps::TableConfig> tables;
    for (const VariableLayout& one : layout->variables)
      for (std::uint32_t part = 0; part < one.parts.size(); ++part)
        if (one.parts[part].shard == i)
          tables.push_back({one.id, one.spec, one.rule, {{part, one.parts[part].rows}}});
    chiefs[i]->configure(tables);
    chiefs[i]->open();
  }
  void crash(std::uint32_t i) {
    network.crash(str("ps", i));
    servers[i].reset();
  }

  // ---- updates ----
  // Numbers of either sign, none of them alike, and now and then a zero of either sign.
  Tensor gradient(const Shape& shape, std::uint64_t seed) const {
    std::vector<float> values(static_cast<std::size_t>(shape.elements()));
    std::uint64_t state = seed * 2 + 1;
    for (float& value : values) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      const auto drawn = static_cast<std::int32_t>(state >> 33) - (1 << 30);
      value = static_cast<float>(drawn) * 0x1p-29f + (drawn < 0 ? -0.01f : 0.01f);
      if (drawn % 17 == 0 && allows_zero) value = drawn < 0 ? -0.0f : 0.0f;
    }
    return Tensor::of<float>(shape, values);
  }
  Update whole(VariableId variable, const UpdateRule& rule, std::uint64_t seed) const {
    return {variable, rule, 0.1f, {}, gradient(spec(variable).shape, seed)};
  }
  // Every row of which the number is one of these modulo 7.
  Update some(VariableId variable, const UpdateRule& rule, std::uint64_t seed,
              const Ids& sevenths) {
    Ids ids;
    for (std::int64_t row = 0; row < spec(variable).rows(); ++row)
      if (std::find(sevenths.begin(), sevenths.end(), row % 7) != sevenths.end())
        ids.push_back(row);
    const auto count = static_cast<std::int64_t>(ids.size());
    return {variable, rule, 0.1f, Tensor::of<std::int64_t>({count}, ids),
            gradient(spec(variable).shape.with_dim(0, count), seed)};
  }
  const VariableSpec& spec(VariableId variable) const { return *layout->variables[variable].spec; }

  // As a push that is applied when it comes, or as the only share of a round.
  void push(std::vector<Update> updates, std::uint64_t round = 0) {
    RemoteStep step(*store);
    ++context.closure;
    context.round = round;
    reactor.wait(step.push(context, updates));
    if (round == 0) return;
    for (const auto& chief : chiefs) {
      auto request = chief->ruled.applyRoundRequest();
      request.setSession(kSession);
      request.setRound(round);
      auto member = request.initMembers(1)[0];
      member.setClosure(context.closure);
      member.setSentLayout(1);
      chief->wait(request.send().ignoreResult());
    }
    context.round = 0;
  }

  // ---- copies ----
  std::string fetch(Mirror& mirror, std::vector<VariableId> variables) {
    try {
      reactor.wait(mirror.fetch(*store, context, std::move(variables)));
      return "";
    } catch (const Error& error) {
      return str(code_name(error.code()), ": ", error.what());
    }
  }
  std::uint64_t fingerprint_of_ps() {
    Mirror fresh;
    EXPECT_EQ(fetch(fresh, all), "");
    return fresh.fingerprint();
  }
  Floats read(Mirror& mirror, VariableId variable, Tensor ids = {}) {
    Read one{variable, std::move(ids), {}};
    mirror.read({&one, 1});
    const auto values = one.value.values<float>();
    return {values.begin(), values.end()};
  }
  Floats pull(VariableId variable, Tensor ids = {}) {
    std::vector<Read> reads{{variable, std::move(ids), {}}};
    RemoteStep step(*store);
    reactor.wait(step.pull(context, reads));
    const auto values = reads[0].value.values<float>();
    return {values.begin(), values.end()};
  }

  bool allows_zero = true;

  rpc::SimReactor reactor;
  rpc::SimNetwork network{reactor};
  MemoryDisk disk;
  std::unique_ptr<Offload> offload = make_inline_offload();
  std::unique_ptr<storage::RowStore> rows = storage::make_memory_row_store(disk);
  std::array<std::unique_ptr<ps::PsServer>, kServers> servers;
  std::array<std::unique_ptr<ps::ShardClient>, kServers> chiefs;
  std::shared_ptr<Layout> layout;
  std::unique_ptr<RemoteStore> store;
  RowEncoding encoding = RowEncoding::kRaw;
  std::vector<VariableId> all;
  StepContext context;
  Mirror mirror;
};

}  // namespace cairn::worker
