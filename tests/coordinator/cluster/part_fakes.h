// The far ends that a part of the engine talks to, played by a test: a ps and a worker that note
// what they are asked, in order, and answer at once unless their script says otherwise.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rpc/cairn.capnp.h"
#include "rpc/net/connection.h"
#include "rpc/server/server.h"
#include "storage/row_encoding.h"
#include "tests/coordinator/cluster/call_script.h"
#include "tests/coordinator/cluster/fake_lane.h"
#include "tests/coordinator/cluster/simulated_session.h"

namespace cairn {

// The place where a fake task listens, as one process after the other.
class FakeProcess {
 public:
  FakeProcess(SimulatedSession& ground, std::string name, rpc::Role role)
      : ground_(ground), name_(std::move(name)), role_(role) {}
  // Listens, as the process of this incarnation.
  void listen(std::uint64_t incarnation, std::vector<rpc::Endpoint> endpoints) {
    rpc::AcceptorOptions door;
    door.cluster = "cairn";
    door.role = role_;
    // "ps1" is task 1
    door.task =
        static_cast<std::uint32_t>(std::stoul(name_.substr(name_.find_first_of("0123456789"))));
    door.incarnation = incarnation;
    acceptor_ = std::make_unique<rpc::Acceptor>(
        ground_.network.host(name_), rpc::Address::parse(address()), door, std::move(endpoints));
  }
  // As after SIGKILL: its connections end, and new ones are refused.
  void crash() {
    ground_.network.crash(name_);
    acceptor_.reset();
  }
  // Its connections end; it goes on, and can be dialled again at once.
  void cut_off() {
    ground_.network.cut("chief", name_);
    ground_.network.heal("chief", name_);
  }
  // It stands still: nothing that it sends arrives.
  void silence() { ground_.network.partition(name_, "chief"); }
  std::string address() const { return "sim://" + name_; }
  const std::string& name() const { return name_; }
  rpc::Reactor* reactor() { return &ground_.reactor; }
  MemoryDisk& disk() { return ground_.disk; }

 private:
  SimulatedSession& ground_;
  std::string name_;
  rpc::Role role_;
  std::unique_ptr<rpc::Acceptor> acceptor_;
};

// A fake task's answer to join(): refused while another coordinator is at work there.
struct FakeOwner {
  std::string at_work;           // another coordinator; empty: none
  std::uint64_t configured = 0;  // for which session it was configured last
  void answer(wire::Claim::Reader claim, wire::ClaimAnswer::Builder out) const {
    out.setGranted(at_work.empty() || claim.getTakeOver());
    out.setOwner(at_work.c_str());
    out.setConfigured(configured);
  }
};

// The control endpoint of a fake task: `script` is met by "ping", `owner` is asked at each join.
inline rpc::Endpoint fake_control(rpc::Reactor* reactor, CallScript& script,
                                  std::function<FakeOwner()> owner) {
  struct Control final : wire::TaskControl::Server {
    Control(CallScript& script, std::function<FakeOwner()> owner)
        : script(script), owner(std::move(owner)) {}
    kj::Promise<void> ping(PingContext) override { return script.meet("ping"); }
    kj::Promise<void> join(JoinContext context) override {
      owner().answer(context.getParams().getClaim(), context.getResults().initAnswer());
      return kj::READY_NOW;
    }
    CallScript& script;
    std::function<FakeOwner()> owner;
  };
  return {reactor, [&script, owner](const rpc::PeerInfo&, rpc::Connection&) {
            return capnp::Capability::Client(kj::heap<Control>(script, owner));
          }};
}

class FakePs {
 public:
  struct Fence {
    std::uint64_t newest = 0;
    std::vector<std::uint64_t> alive;
    bool operator==(const Fence&) const = default;
  };

  FakePs(SimulatedSession& ground, const std::string& name) : process(ground, name, kRole) {}
  void start(std::uint64_t incarnation, std::uint32_t shards = 1) {
    owner.configured = 0;
    std::vector<rpc::Endpoint> doors{
        fake_control(process.reactor(), script, [this] { return owner; })};
    for (std::uint32_t i = 0; i < shards; ++i) doors.push_back(serving_shard(i));
    process.listen(incarnation, std::move(doors));
  }
  // The calls of its shards that begin with `beginning`, in the order in which they came.
  std::vector<std::string> calls_of(const std::string& beginning) const {
    std::vector<std::string> found;
    for (const std::string& call : calls)
      if (call.starts_with(beginning)) found.push_back(call);
    return found;
  }

  FakeProcess process;
  FakeOwner owner;
  CallScript script;               // the first word of each call, and "ping"
  std::vector<std::string> calls;  // "configure", "restore /c/1", "fence", "open", "mark 3", ...
  std::vector<std::vector<VariableId>> tables;  // with which each call of configure came
  std::vector<Fence> fences;
  AppliedClosures applied;  // its shards' answer to a mark
  bool knows_bases = true;  // as a shard that was not restored since
  std::string mounted_at;   // where the folders of checkpoints are here; empty: the same for all
  bool refuses_to_remove = false;  // rows in its local folder

 private:
  static constexpr rpc::Role kRole = rpc::Role::kPs;

  struct Shard final : wire::Shard::Server {
    Shard(FakePs& ps, std::uint32_t index) : ps(ps), index(index) {}
    kj::Promise<void> configure(ConfigureContext context) override {
      ps.owner.configured = context.getParams().getSession();
      ps.tables.emplace_back();
      for (auto table : context.getParams().getTables())
        ps.tables.back().push_back(table.getVariable());
      return noted("configure");
    }
    kj::Promise<void> open(OpenContext) override { return noted("open"); }
    kj::Promise<void> announce(AnnounceContext) override { return noted("announce"); }
    kj::Promise<void> fence(FenceContext context) override {
      auto params = context.getParams();
      Fence fence{params.getNewest(), {}};
      for (std::uint64_t one : params.getAlive()) fence.alive.push_back(one);
      ps.fences.push_back(fence);
      return noted("fence");
    }
    kj::Promise<void> restore(RestoreContext context) override {
      const std::string folder = context.getParams().getFolder();
      return noted(folder.empty() ? "begin anew" : "restore " + folder);
    }
    kj::Promise<void> applyRound(ApplyRoundContext context) override {
      std::string call = str("apply ", context.getParams().getRound(), ":");
      for (auto member : context.getParams().getMembers()) call += str(" ", member.getClosure());
      return noted(call);
    }
    kj::Promise<void> mark(MarkContext context) override {
      auto applied = context.getResults().initApplied();
      applied.setLowWatermark(ps.applied.low_watermark);
      auto ranges = applied.initClosures(static_cast<unsigned>(ps.applied.ranges.size()));
      for (unsigned i = 0; i < ranges.size(); ++i) {
        ranges[i].setBegin(ps.applied.ranges[i].first);
        ranges[i].setEnd(ps.applied.ranges[i].second);
      }
      const auto base = context.getParams().getBase();
      context.getResults().setDelta(base != 0 && ps.knows_bases);
      return noted(
          str("mark ", context.getParams().getAttempt(), base == 0 ? "" : str(" since ", base)));
    }
    // If a mark is dropped while its shard saves, the save stops at once.
    kj::Promise<void> dropMark(DropMarkContext context) override {
      ps.script.break_off<CancelledError>("save", "the mark was dropped while it was saved");
      return noted(str("drop ", context.getParams().getAttempt()));
    }
    // The file is there before the call is answered, and stays if the call fails, as a shard's do.
    kj::Promise<void> save(SaveContext context) override {
      auto params = context.getParams();
      const std::string database = str(ps.process.name(), "-", index);
      const std::string folder = ps.mounted_at + std::string(params.getFolder());
      const std::string name = database + "/rows";
      try {
        ps.process.disk().make_folder(folder + "/" + database);
        ps.process.disk().write_atomically(folder + "/" + name, "some rows");
      } catch (...) {
        return rpc::to_kj(std::current_exception());
      }
      auto file = context.getResults().initFiles(1)[0];
      file.setName(name.c_str());
      file.setBytes(9);
      std::string as;
      if (const auto encoding = params.getEncoding(); encoding.getVariables().size() > 0) {
        const auto rows = static_cast<storage::RowForm>(encoding.getRows());
        const auto slots = static_cast<storage::SlotForm>(encoding.getSlots());
        as = str(" as ", storage::form_name(rows), ", ", storage::form_name(slots), ":");
        for (auto name : encoding.getVariables()) as += str(" ", name.cStr());
      }
      return noted(str("save ", params.getAttempt(), as));
    }
    kj::Promise<void> findDatabases(FindDatabasesContext context) override {
      const auto databases = context.getParams().getDatabases();
      auto troubles = context.getResults().initTroubles(databases.size());
      for (unsigned i = 0; i < databases.size(); ++i) {
        const std::string path = ps.mounted_at + std::string(databases[i]);
        troubles.set(i, ps.process.disk().list(path).empty() ? "there is no such folder" : "");
      }
      return noted("find");
    }
    kj::Promise<void> removeRows(RemoveRowsContext context) override {
      std::string call = "remove";
      for (const auto folder : context.getParams().getFolders()) {
        call += str(" ", folder.cStr());
        if (!ps.refuses_to_remove)
          ps.process.disk().remove_tree(ps.mounted_at + std::string(folder));
      }
      if (ps.refuses_to_remove)
        return rpc::to_kj(std::make_exception_ptr(PermissionDeniedError("not mine")));
      return noted(call);
    }
    kj::Promise<void> noted(const std::string& call) {
      ps.calls.push_back(call);
      return ps.script.meet(call.substr(0, call.find(' ')));
    }
    FakePs& ps;
    std::uint32_t index;
  };

  rpc::Endpoint serving_shard(std::uint32_t index) {
    return {process.reactor(), [this, index](const rpc::PeerInfo&, rpc::Connection&) {
              return capnp::Capability::Client(kj::heap<Shard>(*this, index));
            }};
  }
};

class FakeWorker {
 public:
  FakeWorker(SimulatedSession& ground, const std::string& name)
      : process(ground, name, rpc::Role::kWorker), ground_(ground) {}
  void start(std::uint64_t incarnation, std::size_t lanes = 1) {
    owner.configured = 0;
    std::vector<rpc::Endpoint> doors{
        fake_control(process.reactor(), script, [this] { return present_owner(); })};
    while (this->lanes.size() < lanes) this->lanes.push_back(std::make_unique<FakeLane>(ground_));
    for (std::size_t i = 0; i < lanes; ++i) doors.push_back(this->lanes[i]->endpoint());
    process.listen(incarnation, std::move(doors));
  }
  FakeLane& lane(std::size_t i = 0) { return *lanes.at(i); }

  FakeProcess process;
  FakeOwner owner;
  CallScript script;  // "ping"
  std::vector<std::unique_ptr<FakeLane>> lanes;

 private:
  FakeOwner present_owner() {
    FakeOwner now = owner;
    if (now.configured == 0) now.configured = lane().session;
    return now;
  }

  SimulatedSession& ground_;
};

}  // namespace cairn
