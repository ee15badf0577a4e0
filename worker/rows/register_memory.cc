#include "worker/rows/register_memory.h"

#include <memory>
#include <utility>

#include "core/base/error.h"
#include "core/base/log.h"

namespace cairn::worker {

rpc::RegisterMemory register_with(Device& device) {
  if (device.memory() == Device::Memory::kHost) return {};
  return [&device, told = std::make_shared<bool>(false)](
             std::byte* begin, std::size_t bytes) -> std::shared_ptr<void> {
    try {
      return device.register_host(begin, bytes);
    } catch (const ResourceExhaustedError& error) {
      if (!std::exchange(*told, true))
        log_warning("rows travel to ", device.name(), " by way of other memory: ", error.what());
      return nullptr;
    }
  };
}

}  // namespace cairn::worker
