-- Reservations in a rack: messages between hosts and their switch, and marks on reserved frames.
--
-- Both travel under EtherType 88b7 (OUI-extended) with the identifier 02:68:69 00:02. docs/rack.md says what they mean,
-- crates/base/wire/src/reserve.rs how they are written. Copy this file into Wireshark's folder of personal Lua plugins.

local rack = Proto("hitless_rack", "hitless reservations in a rack")

local OUI_EXTENDED = 0x88b7
local PREFIX = "026869" .. "0002"
local MARK = 7
local KINDS = { [0] = "RSV", "GRT", "copy of a GRT", "refused", "cut", "reset", "release", "mark" }
local REASONS = {
    [0] = "above the limit", "unknown port", "own port", "too many", "old epoch", "foreign source", "unknown context",
}
-- A host that says that it is there gives back a reservation of this context, which no host has.
local NO_CONTEXT = 0xffff
local NO_PLACE = "not readable to its end"

local field = {
    version = ProtoField.uint8("hitless_rack.version", "Version", base.DEC, nil, 0xf0),
    kind = ProtoField.uint8("hitless_rack.kind", "Kind", base.DEC, KINDS, 0x0f),
    class = ProtoField.uint8("hitless_rack.class", "Class", base.DEC, nil, 0xe0),
    attempt = ProtoField.uint8("hitless_rack.attempt", "Attempt", base.DEC, nil, 0x1f),
    unsolicited = ProtoField.bool("hitless_rack.unsolicited", "Unsolicited", 8, nil, 0x10),
    host_epoch = ProtoField.uint16("hitless_rack.host_epoch", "Host epoch", base.HEX),
    switch_epoch = ProtoField.uint16("hitless_rack.switch_epoch", "Switch epoch", base.HEX),
    context = ProtoField.uint16("hitless_rack.context", "Context"),
    burst = ProtoField.uint32("hitless_rack.burst", "Burst"),
    peer = ProtoField.ether("hitless_rack.peer", "Peer"),
    frames = ProtoField.uint8("hitless_rack.frames", "Frames"),
    bytes = ProtoField.uint32("hitless_rack.bytes", "Bytes on the wire"),
    send = ProtoField.uint64("hitless_rack.send", "Until the sender's port is free (ps)"),
    recv = ProtoField.uint64("hitless_rack.recv", "Until the receiver's port is free (ps)"),
    kept = ProtoField.uint64("hitless_rack.kept", "Kept by the switch for (ps)"),
    reason = ProtoField.uint8("hitless_rack.reason", "Reason", base.DEC, REASONS),
    index = ProtoField.uint8("hitless_rack.index", "Index"),
    of = ProtoField.uint8("hitless_rack.of", "Of"),
}
local problem = ProtoExpert.new("hitless_rack.malformed", NO_PLACE, expert.group.MALFORMED, expert.severity.WARN)
rack.fields = field
rack.experts = { problem }

local by_type = DissectorTable.get("ethertype")
local as_data = Dissector.get("data")

local function add_id(tvb, tree)
    tree:add(field.host_epoch, tvb(7, 2))
    tree:add(field.switch_epoch, tvb(9, 2))
    tree:add(field.context, tvb(11, 2))
    tree:add(field.burst, tvb(13, 4))
    return string.format("context %d, burst %d", tvb(11, 2):uint(), tvb(13, 4):uint())
end

local function dissect_message(tvb, tree, kind)
    tree:add(field.attempt, tvb(6, 1))
    local text = string.format("%s, %s", KINDS[kind] or "unknown", add_id(tvb, tree))
    tree:add(field.peer, tvb(17, 6))
    tree:add(field.frames, tvb(23, 1))
    tree:add(field.bytes, tvb(24, 4))
    if kind == 1 or kind == 2 then
        tree:add(field.send, tvb(28, 6))
        tree:add(field.recv, tvb(34, 6))
        tree:add(field.kept, tvb(40, 6))
        local wait = math.max(tvb(28, 6):uint64():tonumber(), tvb(34, 6):uint64():tonumber())
        text = string.format("%s, wait %.1f us", text, wait / 1e6)
    elseif kind == 3 then
        tree:add(field.reason, tvb(28, 1))
        text = text .. ", " .. (REASONS[tvb(28, 1):uint()] or "unknown")
    elseif kind == 4 then
        tree:add(field.index, tvb(28, 1))
    elseif kind == 6 and tvb(11, 2):uint() == NO_CONTEXT then
        text = tvb(23, 1):uint() > 0 and "the host is there" or "the host leaves"
    else
        text = string.format("%s, %d frames", text, tvb(23, 1):uint())
    end
    return text
end

local function dissect_mark(tvb, tree)
    tree:add(field.unsolicited, tvb(6, 1))
    local text = "mark, " .. add_id(tvb, tree)
    tree:add(field.index, tvb(17, 1))
    tree:add(field.of, tvb(18, 1))
    return string.format("%s, frame %d of %d", text, tvb(17, 1):uint() + 1, tvb(18, 1):uint())
end

function rack.dissector(tvb, pinfo, root)
    if tvb:len() < 6 or tostring(tvb(0, 5):bytes()):lower() ~= PREFIX then
        return as_data:call(tvb, pinfo, root)
    end
    local kind = tvb(5, 1):bitfield(4, 4)
    local needs = kind == MARK and 21 or 46
    pinfo.cols.protocol:set("hitless rack")
    local tree = root:add(rack, tvb(0, math.min(tvb:len(), kind == MARK and 19 or 46)))
    tree:add(field.version, tvb(5, 1))
    tree:add(field.kind, tvb(5, 1))
    if tvb:len() < needs then
        tree:add_proto_expert_info(problem)
        return tvb:len()
    end
    tree:add(field.class, tvb(6, 1))
    local text = kind == MARK and dissect_mark(tvb, tree) or dissect_message(tvb, tree, kind)
    tree:append_text(", " .. text)
    pinfo.cols.info:set(text)
    if kind == MARK then
        -- The frame's own type and payload follow.
        by_type:try(tvb(19, 2):uint(), tvb(21):tvb(), pinfo, root)
    end
    return tvb:len()
end

by_type:add(OUI_EXTENDED, rack)
