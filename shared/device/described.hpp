#pragma once
// Names of the enumerators and members in backend.hpp for messages (core/described.hpp). These names are in a
// separate file because backend.hpp is installed and must not need Boost or JSON.

#include "core/described.hpp"
#include "device/backend.hpp"

namespace carousel::device {

BOOST_DESCRIBE_ENUM(device_kind, cpu, cuda)
BOOST_DESCRIBE_ENUM(memory_kind, memfd, vmm, ipc)
BOOST_DESCRIBE_STRUCT(device_id, (), (kind, uuid, ordinal))

}  // namespace carousel::device
