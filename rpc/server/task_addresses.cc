#include "rpc/server/task_addresses.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>

#include "core/base/error.h"
#include "rpc/net/network.h"
#include "rpc/net/socket_address.h"

namespace cairn::rpc {
namespace {

// Lists of tasks also hold texts that are no address, which the network refuses when it dials.
std::optional<Address> parsed(const std::string& text) {
  try {
    return Address::parse(text);
  } catch (const InvalidArgumentError&) {
    return std::nullopt;
  }
}

// Host names do not depend on case; a number has one form.
std::string plain_host(const Address& address) {
  if (address.scheme == Address::Scheme::kUnix) return "localhost";
  std::string host = address.host;
  std::transform(host.begin(), host.end(), host.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  if (address.scheme == Address::Scheme::kSim) return "sim://" + host;
  const auto numeric = numeric_addresses(host, address.port);
  if (numeric.empty()) return host;
  return is_loopback(numeric.front()) ? "localhost" : numeric_host(numeric.front());
}

// Empty: an address that no other task can have.
std::string plain_address(const std::string& text) {
  std::optional<Address> address = parsed(text);
  if (!address) return text;
  if (address->scheme == Address::Scheme::kTcp) {
    if (address->port == 0) return "";
    if (const auto numeric = numeric_addresses(address->host, address->port); !numeric.empty())
      address->host = numeric_host(numeric.front());
    else
      address->host = plain_host(*address);
  }
  return address->str();
}

}  // namespace

void verify_distinct(const std::vector<TaskAddress>& tasks) {
  std::map<std::string, const TaskAddress*> known;
  for (const TaskAddress& task : tasks) {
    const std::string plain = plain_address(task.address);
    if (plain.empty()) continue;
    const auto [first, fresh] = known.try_emplace(plain, &task);
    if (fresh) continue;
    const bool same_text = first->second->address == task.address;
    throw InvalidArgumentError(str(
        "two tasks have one address: ", first->second->task, " at ", first->second->address,
        " and ", task.task,
        same_text ? " at the same" : " at " + task.address + ", which is the same",
        "; each task is a process with an address of its own: correct the cluster's addresses"));
  }
}

std::size_t tasks_on_host_of(const std::string& address, const std::vector<TaskAddress>& tasks) {
  const auto host_of = [](const std::string& text) {
    const std::optional<Address> made = parsed(text);
    return made ? plain_host(*made) : text;
  };
  const std::string host = host_of(address);
  return static_cast<std::size_t>(std::count_if(
      tasks.begin(), tasks.end(), [&](const auto& task) { return host_of(task.address) == host; }));
}

}  // namespace cairn::rpc
