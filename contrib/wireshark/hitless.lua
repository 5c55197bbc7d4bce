-- Wireshark dissector for a protected link, as `crates/linux/link/src/frame.rs` puts it on the wire.
--
--   88b5   link header, seal, then the rest of the frame from its type on
--   88b6   link header, seal, then a whole frame with addresses of its own
--
-- The link header (`crates/base/wire/src/link.rs`); numbers are big-endian:
--
--   tag       kind:3 class:1 era:1 feedback:1 epoch:2   number:16      (number only where a kind has one)
--   feedback  hold:1 gaps:4 class:1 era:1 0:1           latest:16      then four bytes for each gap
--   gap       first:16  era:1 round:7  frames:8
--
-- In place of a link header there may be a greeting, by which two ends with a key agree on a session
-- (`crates/protocols/seal/src/keyed.rs`); it is recognised whatever the preference says:
--
--   greeting  111:3 kind:5 own:128 echo:128 latest:64 tag:64
--
-- Where nothing is sealed there may be a probe in its place, by which the two ends find out whether a cable joins them
-- (`crates/base/wire/src/link/probe.rs`):
--
--   probe     111:3 kind:5   proved:1 0:4 paths:3   token:16   instance:32   heard:32
--
-- A frame may have its number in its two addresses instead, and an ordinary type (`crates/base/wire/src/link/stamp.rs`):
--
--   to        a6:8        tag:4   acknowledges:1 of class:1 latest:17   number:17
--   from      tag:4 6:4   tag:8   pushed:1 class:1   first:16 size:14
--
-- The number of a segment is that of the first plus (its TCP sequence number - first) / size. `pushed` says that the last
-- segment got its PSH from the sender of the stamp. Without a size and all else but the lowest bit of `first`, it is a probe.
-- The tag depends on the session, which is not known here: that the addresses of a TCP segment look like a stamp may be chance.
--
-- Load it with `wireshark -X lua_script:hitless.lua`, or copy it to the personal Lua plugins folder.
-- No frame says how it is sealed: set the preference, `-o hitless.seal:crc` on the command line.
--
-- What `Header::parse` and `Framing::parse` refuse as malformed is marked `hitless.malformed` here, and
-- nothing else is. Seals are shown, not checked. No bytes make the script fail. Of a frame that the capture
-- cut short, what lies inside may look malformed: a script cannot pass on how long it was.

local OWN, WHOLE = 0x88b5, 0x88b6

local VERSION = 2
local MAX_GAPS = 8
local SESSION_LEN = 20
local ETHERNET = 14
-- A type field up to this is a length, and an LLC header follows.
local MAX_LENGTH = 1500
-- A protected link may carry another's frames. Lua's C stack bears some two hundred calls, and a hostile
-- frame has room for thousands of levels.
local MAX_DEPTH = 4

local PLAIN, DATA, RETRANSMISSION, DUMMY, ACK, NOTICE, SESSION, BARE = 0, 1, 2, 3, 4, 5, 6, 7

local KINDS = {
    [PLAIN] = "Plain",
    [DATA] = "Data",
    [RETRANSMISSION] = "Retransmission",
    [DUMMY] = "Dummy",
    [ACK] = "Ack",
    [NOTICE] = "Notice",
    [SESSION] = "Session",
    [BARE] = "Unprotected",
}
local NUMBERED = { [DATA] = true, [RETRANSMISSION] = true, [DUMMY] = true }
local NEEDS_FEEDBACK = { [PLAIN] = true, [ACK] = true, [NOTICE] = true }
local HAS_BODY = { [PLAIN] = true, [DATA] = true, [RETRANSMISSION] = true, [BARE] = true }

-- Behind the three bits of BARE.
local GREETINGS = { [1] = "Hello", [2] = "Challenge", [3] = "Proof", [4] = "Done" }
local GREETING_LEN = 48

local QUESTION, ANSWER = 8, 9
local PROBES = { [QUESTION] = "Question", [ANSWER] = "Answer" }
local PROBE_LEN = 12

local CLASSES = { [0] = "Ordered", [1] = "Non-blocking" }

local SESSION_KINDS = {
    [0] = "Hello",
    [1] = "Welcome",
    [2] = "Confirm",
    [3] = "Unknown",
    [4] = "Bye",
    [5] = "Bye, all delivered",
    [6] = "Gone",
    [7] = "Hello, asked for",
    [8] = "Refuse: version",
    [9] = "Refuse: classes",
    [10] = "Refuse: window",
    [11] = "Refuse: MTU",
    [12] = "Refuse: seal",
    [13] = "Refuse: deactivated",
}

local NO_SEAL, CRC, KEY = 0, 1, 2
local SEALS = { [NO_SEAL] = "none", [CRC] = "crc", [KEY] = "key" }

local hitless = Proto("hitless", "Protected link")

hitless.prefs.seal = Pref.enum(
    "Seal",
    NO_SEAL,
    "How the ends seal their frames: no frame says so",
    { { 1, SEALS[NO_SEAL], NO_SEAL }, { 2, SEALS[CRC], CRC }, { 3, SEALS[KEY], KEY } },
    true
)

local field = {
    kind = ProtoField.uint8("hitless.kind", "Kind", base.DEC, KINDS, 0xe0),
    class = ProtoField.uint8("hitless.class", "Class", base.DEC, CLASSES, 0x10),
    era = ProtoField.uint8("hitless.era", "Era", base.DEC, nil, 0x08),
    feedback = ProtoField.bool("hitless.feedback", "Acknowledgement follows", 8, nil, 0x04),
    epoch = ProtoField.uint8("hitless.epoch", "Epoch, modulo four", base.DEC, nil, 0x03),
    seq = ProtoField.uint16("hitless.seq", "Sequence number", base.DEC),

    ack = ProtoField.none("hitless.ack", "Acknowledgement"),
    ack_hold = ProtoField.bool("hitless.ack.hold", "Hold new frames", 8, nil, 0x80),
    ack_gaps = ProtoField.uint8("hitless.ack.gaps", "Gaps listed", base.DEC, nil, 0x78),
    ack_class = ProtoField.uint8("hitless.ack.class", "Class", base.DEC, CLASSES, 0x04),
    ack_era = ProtoField.uint8("hitless.ack.era", "Era", base.DEC, nil, 0x02),
    ack_latest = ProtoField.uint16("hitless.ack.latest", "Latest", base.DEC),

    gap = ProtoField.none("hitless.gap", "Gap"),
    gap_first = ProtoField.uint16("hitless.gap.first", "First missing", base.DEC),
    gap_era = ProtoField.uint8("hitless.gap.era", "Era", base.DEC, nil, 0x80),
    gap_round = ProtoField.uint8("hitless.gap.round", "Asked before", base.DEC, nil, 0x7f),
    gap_frames = ProtoField.uint8("hitless.gap.frames", "Frames missing", base.DEC),

    session = ProtoField.none("hitless.session", "Life cycle"),
    session_kind = ProtoField.uint8("hitless.session.kind", "Message", base.DEC, SESSION_KINDS),
    session_version = ProtoField.uint8("hitless.session.version", "Version", base.DEC),
    session_classes = ProtoField.uint8("hitless.session.classes", "Classes in use", base.HEX),
    session_seal = ProtoField.uint8("hitless.session.seal", "Seal", base.DEC, SEALS, 0xfe),
    session_protects = ProtoField.bool("hitless.session.protects", "Protects what it sends", 8, nil, 0x01),
    session_window = ProtoField.uint16("hitless.session.window", "Window", base.DEC),
    session_mtu = ProtoField.uint16("hitless.session.mtu", "Longest frame", base.DEC),
    session_instance = ProtoField.uint32("hitless.session.instance", "Instance", base.HEX),
    session_heard = ProtoField.uint32("hitless.session.heard", "Instance heard", base.HEX),
    session_epoch = ProtoField.uint32("hitless.session.epoch", "Epoch", base.DEC),

    seal = ProtoField.none("hitless.seal", "Seal"),
    seal_crc = ProtoField.uint32("hitless.seal.crc", "CRC-32", base.HEX),
    seal_counter = ProtoField.uint64("hitless.seal.counter", "Counter", base.DEC),
    seal_tag = ProtoField.uint64("hitless.seal.tag", "Tag", base.HEX),

    greeting = ProtoField.none("hitless.greeting", "Greeting of the seal"),
    greeting_kind = ProtoField.uint8("hitless.greeting.kind", "Message", base.DEC, GREETINGS, 0x1f),
    greeting_own = ProtoField.bytes("hitless.greeting.own", "Offer"),
    greeting_echo = ProtoField.bytes("hitless.greeting.echo", "Offer heard"),
    greeting_latest = ProtoField.uint64("hitless.greeting.latest", "Latest counter received", base.DEC),
    greeting_tag = ProtoField.uint64("hitless.greeting.tag", "Tag", base.HEX),

    probe = ProtoField.none("hitless.probe", "Probe"),
    probe_kind = ProtoField.uint8("hitless.probe.kind", "Message", base.DEC, PROBES, 0x1f),
    probe_proved = ProtoField.bool("hitless.probe.proved", "Its own questions come by every path", 8, nil, 0x80),
    probe_reserved = ProtoField.bool("hitless.probe.reserved", "Came to the reserved address", 8, nil, 0x01),
    probe_return = ProtoField.bool("hitless.probe.return", "Came to its sender's address", 8, nil, 0x02),
    probe_stamped = ProtoField.bool("hitless.probe.stamped", "Came with the addresses of a stamp", 8, nil, 0x04),
    probe_token = ProtoField.uint16("hitless.probe.token", "Token", base.DEC),
    probe_instance = ProtoField.uint32("hitless.probe.instance", "Instance", base.HEX),
    probe_heard = ProtoField.uint32("hitless.probe.heard", "Instance that it is for", base.HEX),

    type = ProtoField.uint16("hitless.type", "Type of the frame inside", base.HEX),
    padding = ProtoField.bytes("hitless.padding", "Padding"),
}
hitless.fields = field

local remark = {
    malformed = ProtoExpert.new("hitless.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR),
    cut = ProtoExpert.new("hitless.cut", "Cut short", expert.group.UNDECODED, expert.severity.NOTE),
    deep = ProtoExpert.new("hitless.deep", "Nested deeply", expert.group.UNDECODED, expert.severity.NOTE),
    other_version = ProtoExpert.new("hitless.session.other_version", "Other version", expert.group.PROTOCOL,
        expert.severity.WARN),
    other_seal = ProtoExpert.new("hitless.session.other_seal", "Other seal", expert.group.UNDECODED,
        expert.severity.WARN),
}
hitless.experts = remark

local by_type = DissectorTable.get("ethertype")
local as_ethernet = Dissector.get("eth_withoutfcs")
local as_llc = Dissector.get("llc")
local as_data = Dissector.get("data")

-- Raised to leave a frame that cannot be read further, after an expert has said why.
local REFUSED = {}

local function refuse(item, why)
    item:add_proto_expert_info(remark.malformed, why)
    error(REFUSED)
end

-- Reads a frame from front to back; `item` is where a complaint is shown.
local Reader = {}
Reader.__index = Reader

function Reader.new(tvb, item)
    return setmetatable({ tvb = tvb, item = item, at = 0 }, Reader)
end

function Reader:left()
    return self.tvb:len() - self.at
end

function Reader:need(len, what)
    if self:left() >= len then
        return
    end
    -- The frame may have been longer than what was captured of it.
    if self.at + len <= self.tvb:reported_len() then
        self.item:add_proto_expert_info(remark.cut, "The capture ends within " .. what)
        error(REFUSED)
    end
    refuse(self.item, "The frame ends within " .. what)
end

-- The next bytes, which stay where they are.
function Reader:peek(len, what)
    self:need(len, what)
    return self.tvb:range(self.at, len)
end

function Reader:take(len, what)
    local range = self:peek(len, what)
    self.at = self.at + len
    return range
end

-- A number with the mark of the odd era, as the daemon's log has it.
local function seq_text(number, era)
    return string.format("%d%s", number, era == 1 and "'" or "")
end

local function read_gap(reader, tree)
    local range = reader:take(4, "a gap")
    local first, frames = range:range(0, 2):uint(), range:range(3, 1):uint()
    local text = string.format("%s+%d", seq_text(first, range:bitfield(16, 1)), frames)
    local item = tree:add(field.gap, range):append_text(": " .. text)
    item:add(field.gap_first, range:range(0, 2))
    item:add(field.gap_era, range:range(2, 1))
    item:add(field.gap_round, range:range(2, 1))
    item:add(field.gap_frames, range:range(3, 1))
    if frames == 0 then
        refuse(item, "A gap of no frames")
    end
    return text
end

-- Returns its text for the Info column.
local function read_feedback(reader, tree)
    local range = reader:take(3, "the acknowledgement")
    local flags, gaps = range:range(0, 1), range:bitfield(1, 4)
    local latest = seq_text(range:range(1, 2):uint(), range:bitfield(6, 1))
    local length = math.min(3 + 4 * gaps, 3 + reader:left())
    local item = tree:add(field.ack, reader.tvb:range(range:offset(), length)):append_text(": " .. latest)
    item:add(field.ack_hold, flags)
    item:add(field.ack_gaps, flags)
    item:add(field.ack_class, flags)
    item:add(field.ack_era, flags)
    item:add(field.ack_latest, range:range(1, 2))
    if range:bitfield(7, 1) ~= 0 then
        refuse(item, "A reserved bit is set")
    end
    if gaps > MAX_GAPS then
        refuse(item, "More gaps than an acknowledgement lists")
    end

    local text = "ack " .. latest
    if range:bitfield(5, 1) == 1 then
        text = text .. " non-blocking"
    end
    if range:bitfield(0, 1) == 1 then
        text = text .. " hold"
    end
    local missing = {}
    for i = 1, gaps do
        missing[i] = read_gap(reader, item)
    end
    if gaps > 0 then
        text = text .. " missing " .. table.concat(missing, " ")
    end
    return " [" .. text .. "]"
end

-- Returns its text for the Info column.
local function read_session(reader, tree, prefs)
    local range = reader:take(SESSION_LEN, "the life-cycle message")
    local name = SESSION_KINDS[range:range(0, 1):uint()]
    local version, seal = range:range(1, 1):uint(), range:bitfield(24, 7)
    local item = tree:add(field.session, range):append_text(": " .. (name or "no such message"))
    item:add(field.session_kind, range:range(0, 1))
    item:add(field.session_version, range:range(1, 1))
    item:add(field.session_classes, range:range(2, 1))
    item:add(field.session_seal, range:range(3, 1))
    item:add(field.session_protects, range:range(3, 1))
    item:add(field.session_window, range:range(4, 2))
    item:add(field.session_mtu, range:range(6, 2))
    item:add(field.session_instance, range:range(8, 4))
    item:add(field.session_heard, range:range(12, 4))
    item:add(field.session_epoch, range:range(16, 4))
    if not name then
        refuse(item, "No such message")
    end
    if version ~= VERSION then
        item:add_proto_expert_info(remark.other_version,
            string.format("Version %d; this script knows %d", version, VERSION))
    end
    if seal ~= prefs.seal then
        item:add_proto_expert_info(remark.other_seal,
            string.format("The sender's seal is %s, the preference hitless.seal says %s",
                SEALS[seal] or seal, SEALS[prefs.seal]))
    end
    return ": " .. name
end

-- Returns the kind and the text for the Info column.
local function read_header(reader, tree, prefs)
    local tag = reader:take(1, "the link header")
    local kind, class, era = tag:bitfield(0, 3), tag:bitfield(3, 1), tag:bitfield(4, 1)
    local has_feedback = tag:bitfield(5, 1) == 1
    tree:add(field.kind, tag)
    if NUMBERED[kind] then
        tree:add(field.class, tag)
        tree:add(field.era, tag)
    end
    tree:add(field.feedback, tag)
    tree:add(field.epoch, tag)

    if kind == BARE and (prefs.seal ~= KEY or tag:bitfield(3, 5) ~= 0) then
        refuse(tree, "No such kind")
    elseif not NUMBERED[kind] and class + era ~= 0 then
        refuse(tree, "A class or era without a number")
    elseif NEEDS_FEEDBACK[kind] and not has_feedback then
        refuse(tree, "No acknowledgement, which this kind is for")
    elseif kind == SESSION and has_feedback then
        refuse(tree, "An acknowledgement in a life-cycle message")
    end

    local text = KINDS[kind]
    if NUMBERED[kind] then
        local number = reader:take(2, "the sequence number")
        tree:add(field.seq, number)
        text = text .. " seq " .. seq_text(number:uint(), era) .. (class == 1 and " non-blocking" or "")
    end
    if kind ~= BARE then
        text = string.format("%s epoch %d", text, tag:bitfield(6, 2))
    end
    if kind == SESSION then
        text = text .. read_session(reader, tree, prefs)
    elseif has_feedback then
        text = text .. read_feedback(reader, tree)
    end
    return kind, text
end

-- Returns its text for the Info column, or nothing if this is no greeting.
local function read_greeting(reader, tree)
    local tag = reader:peek(1, "the link header")
    local name = GREETINGS[tag:bitfield(3, 5)]
    if tag:bitfield(0, 3) ~= BARE or not name then
        return nil
    end
    reader:take(1, "the link header")
    tree:add(field.kind, tag)
    local range = reader:take(GREETING_LEN, "the greeting")
    local item = tree:add(field.greeting, range):append_text(": " .. name)
    item:add(field.greeting_kind, tag)
    item:add(field.greeting_own, range:range(0, 16))
    item:add(field.greeting_echo, range:range(16, 16))
    item:add(field.greeting_latest, range:range(32, 8))
    item:add(field.greeting_tag, range:range(40, 8))
    return "Greeting: " .. name
end

-- Returns its text for the Info column, or nothing if this is no probe.
local function read_probe(reader, tree, prefs)
    local tag = reader:peek(1, "the link header")
    local kind = tag:bitfield(3, 5)
    if prefs.seal ~= NO_SEAL or tag:bitfield(0, 3) ~= BARE or not PROBES[kind] then
        return nil
    end
    local range = reader:take(PROBE_LEN, "the probe")
    local flags, token = range:range(1, 1), range:range(2, 2)
    local item = tree:add(field.probe, range):append_text(": " .. PROBES[kind])
    item:add(field.probe_kind, tag)
    item:add(field.probe_proved, flags)
    if kind == ANSWER then
        item:add(field.probe_reserved, flags)
        item:add(field.probe_return, flags)
        item:add(field.probe_stamped, flags)
    end
    item:add(field.probe_token, token)
    item:add(field.probe_instance, range:range(4, 4))
    item:add(field.probe_heard, range:range(8, 4))
    if flags:bitfield(1, 4) ~= 0 or kind == QUESTION and flags:bitfield(5, 3) ~= 0 then
        refuse(item, "A reserved bit is set")
    end
    return string.format("Probe: %s %d", PROBES[kind], token:uint())
end

local function read_seal(reader, tree, prefs)
    if prefs.seal == CRC then
        local range = reader:take(4, "the seal")
        tree:add(field.seal, range):add(field.seal_crc, range)
    elseif prefs.seal == KEY then
        local range = reader:take(16, "the seal")
        local item = tree:add(field.seal, range)
        item:add(field.seal_counter, range:range(0, 8))
        item:add(field.seal_tag, range:range(8, 8))
    end
end

local depth = 0

-- Another dissector may fail on what it is given: it shows that itself, and it is no error of ours.
-- It has the Info column to itself; ours goes in front afterwards, because TCP puts its remarks there too.
local function hand_over(dissect, tree, pinfo, text)
    if depth >= MAX_DEPTH then
        tree:add_proto_expert_info(remark.deep, "Nested too deeply to go on")
        return
    end
    pinfo.cols.info:clear()
    depth = depth + 1
    pcall(dissect)
    depth = depth - 1
    pinfo.cols.info:prepend(text .. " | ")
end

-- The frame inside, without its addresses.
local function dissect_own(reader, tree, pinfo, root, text)
    local kind = reader:take(2, "the type of the frame inside")
    tree:add(field.type, kind)
    tree:set_len(reader.at)
    local number = kind:uint()
    local is_length = number <= MAX_LENGTH
    local length = is_length and math.min(number, reader:left()) or reader:left()
    if length == 0 then
        return
    end
    local inner = reader:take(length, "the frame inside"):tvb()
    hand_over(function()
        if is_length then
            as_llc:call(inner, pinfo, root)
        elseif by_type:get_dissector(number) then
            by_type:try(number, inner, pinfo, root)
        else
            pinfo.cols.info:set(string.format("type 0x%04x", number))
            as_data:call(inner, pinfo, root)
        end
    end, tree, pinfo, text)
    -- IP and its like cut their buffer to the length that they state: the rest is padding.
    reader.at = reader.at - length + math.min(inner:reported_len(), length)
end

local function dissect_whole(reader, tree, pinfo, root, text)
    reader:need(ETHERNET, "the frame inside")
    tree:set_len(reader.at)
    local inner = reader:take(reader:left(), "the frame inside"):tvb()
    hand_over(function()
        as_ethernet:call(inner, pinfo, root)
    end, tree, pinfo, text)
end

local function dissect(reader, tree, pinfo, root)
    local whole = pinfo.match_uint == WHOLE
    local prefs = hitless.prefs
    local kind
    local text = not whole and (read_greeting(reader, tree) or read_probe(reader, tree, prefs)) or nil
    if not text then
        kind, text = read_header(reader, tree, prefs)
    end
    tree:append_text(", " .. text)
    pinfo.cols.info:set(text)
    if kind then
        read_seal(reader, tree, prefs)
    end
    tree:set_len(reader.at)
    if kind and HAS_BODY[kind] then
        local dissect_body = whole and dissect_whole or dissect_own
        dissect_body(reader, tree, pinfo, root, text)
    end
    if reader:left() > 0 then
        tree:add(field.padding, reader:take(reader:left(), "the padding"))
    end
end

function hitless.dissector(tvb, pinfo, root)
    pinfo.cols.protocol:set("hitless")
    pinfo.cols.info:set("Protected link")
    local tree = root:add(hitless, tvb:range())
    local ok, problem = pcall(dissect, Reader.new(tvb, tree), tree, pinfo, root)
    if not ok and problem == REFUSED then
        pinfo.cols.info:append(" [not readable to its end]")
    elseif not ok then
        error(problem, 0)
    end
    return tvb:len()
end

by_type:add(OWN, hitless)
by_type:add(WHOLE, hitless)

-- Numbers in addresses.

local STAMP_DATA, STAMP_PROBE = 0, 1
local STAMPS = {
    [STAMP_DATA] = "Data",
    [STAMP_PROBE] = "Probe",
}
local MOST_SEGMENTS = 64

local stamp = Proto("hitless_stamp", "Protected link, number in addresses")

local stamped = {
    kind = ProtoField.uint8("hitless.stamp.kind", "Kind", base.DEC, STAMPS),
    lower = ProtoField.bool("hitless.stamp.lower", "From the end with the lower address"),
    tag = ProtoField.uint16("hitless.stamp.tag", "Tag of the session", base.HEX),
    class = ProtoField.uint8("hitless.stamp.class", "Class", base.DEC, CLASSES),
    seq = ProtoField.uint16("hitless.stamp.seq", "Sequence number", base.DEC),
    era = ProtoField.uint8("hitless.stamp.era", "Era", base.DEC),
    latest = ProtoField.uint16("hitless.stamp.ack.latest", "Acknowledged", base.DEC),
    ack_era = ProtoField.uint8("hitless.stamp.ack.era", "Era of the acknowledgement", base.DEC),
    ack_class = ProtoField.uint8("hitless.stamp.ack.class", "Class of the acknowledgement", base.DEC, CLASSES),
    first = ProtoField.uint16("hitless.stamp.first", "First segment's TCP sequence number, lower half", base.DEC),
    size = ProtoField.uint16("hitless.stamp.size", "Payload of a segment", base.DEC),
    index = ProtoField.uint8("hitless.stamp.index", "Segment", base.DEC),
    pushed = ProtoField.bool("hitless.stamp.pushed", "PSH of the last segment was added"),
}
stamp.fields = stamped

local stamp_malformed =
    ProtoExpert.new("hitless.stamp.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR)
stamp.experts = { stamp_malformed }

local tcp_seq = Field.new("tcp.seq_raw")

-- The index of a segment by its TCP sequence number, or nothing if it is none of them.
local function segment_index(first, size)
    local seq = tcp_seq()
    if not seq then
        return nil
    end
    local ahead = (seq.value - first) % 65536
    local index = math.floor(ahead / size)
    return ahead % size == 0 and index < MOST_SEGMENTS and index or nil
end

-- The parts of the two addresses, or nothing if they are not those of a stamp.
local function read_addresses(to, from)
    local parts = {
        tag = to:bitfield(8, 4) * 4096 + from:bitfield(0, 4) * 256 + from:bitfield(8, 8),
        has_ack = to:bitfield(12, 1),
        ack_class = to:bitfield(13, 1),
        ack_era = to:bitfield(14, 1),
        latest = to:bitfield(15, 16),
        era = to:bitfield(31, 1),
        number = to:bitfield(32, 16),
        pushed = from:bitfield(16, 1),
        class = from:bitfield(17, 1),
        first = from:bitfield(18, 16),
        size = from:bitfield(34, 14),
    }
    if parts.has_ack == 0 and parts.ack_class + parts.ack_era + parts.latest ~= 0 then
        return nil
    end
    local meaning = parts.tag + parts.has_ack + parts.era + parts.number + parts.pushed + parts.class
    if parts.size == 0 and (meaning ~= 0 or parts.first > 1) then
        return nil
    end
    return parts
end

local function read_stamped_data(to, from, parts, tree)
    tree:add(stamped.tag, to, parts.tag)
    tree:add(stamped.class, from, parts.class)
    if parts.has_ack == 1 then
        tree:add(stamped.ack_class, to, parts.ack_class)
        tree:add(stamped.ack_era, to, parts.ack_era)
        tree:add(stamped.latest, to, parts.latest)
    end
    tree:add(stamped.first, from, parts.first)
    tree:add(stamped.size, from, parts.size)
    tree:add(stamped.pushed, from, parts.pushed == 1)
    local index = segment_index(parts.first, parts.size)
    if not index then
        tree:add_proto_expert_info(stamp_malformed, "The frame is none of the segments")
        return "malformed"
    end
    tree:add(stamped.index, from, index):set_generated()
    local number = parts.number + index
    local era = (parts.era + math.floor(number / 65536)) % 2
    number = number % 65536
    tree:add(stamped.seq, to, number)
    tree:add(stamped.era, to, era)
    local text = "Data seq " .. seq_text(number, era) .. (parts.class == 1 and " non-blocking" or "")
    return parts.has_ack == 1 and text .. " [ack " .. seq_text(parts.latest, parts.ack_era) .. "]" or text
end

function stamp.dissector(tvb, pinfo, root)
    if tvb:len() < ETHERNET or tvb:range(0, 1):uint() ~= 0xa6 or tvb:range(6, 1):bitfield(4, 4) ~= 6 then
        return
    end
    local to, from = tvb:range(0, 6), tvb:range(6, 6)
    local parts = read_addresses(to, from)
    if not parts then
        return
    end
    local kind = parts.size == 0 and STAMP_PROBE or STAMP_DATA
    local tree = root:add(stamp, tvb:range(0, 12))
    tree:add(stamped.kind, from, kind)
    local text = STAMPS[kind]
    if kind == STAMP_DATA then
        text = read_stamped_data(to, from, parts, tree)
    else
        tree:add(stamped.lower, from, parts.first == 1)
    end
    tree:append_text(", " .. text)
    pinfo.cols.info:prepend(text .. " | ")
end

register_postdissector(stamp)
