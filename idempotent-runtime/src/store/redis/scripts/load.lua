return { 0, clock(), unpack(record()) }
